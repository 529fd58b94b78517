//go:build stories && full

package stories

// fullRing tells whether all stories are told.
const fullRing = true
