// Package release removes Weir's finalizer from all objects, so that Weir can be taken out of a
// cluster: the work of weir release. It keeps no state; to resume is to start over.
//
// Goroutines: one for each kind that is listed and for each patch, joined by Release.Run. One lock
// guards the counts that it reports.
package release
