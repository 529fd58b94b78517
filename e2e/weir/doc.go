// Package weir runs the weir binary as users run it, and reads what it says of
// itself: its readiness, its metrics and its log.
package weir
