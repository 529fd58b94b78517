// Package report is the result of shadow mode, as it is written, served and shown. The processes
// that compare write it; weir and kubectl weir read it.
//
// It is pure: the time is an argument. A report that is read may come from anybody, so Read bounds
// its size, and Draw keeps names and reasons in their line.
package report
