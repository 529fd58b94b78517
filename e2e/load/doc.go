// Package load makes the objects of a benchmark, and measures at the API server how fast they go.
//
// All rates come from one watch of the driver's own, from the moment in which the owner's DELETE is
// sent to the event that ends the last dependent. So a ratio of two rates compares only what
// deletes.
package load
