// Package report is what shadow mode has found, as it is written, served and shown: the processes
// that compare write one, weir and kubectl weir read it.
//
// It is pure: what a moment is comes in as an argument. A report that is read may come from
// anybody: Read bounds it, and Draw shows names and reasons so that they stay in their line.
package report
