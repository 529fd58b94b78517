// Package load makes the objects of a benchmark, runs the systems that are
// compared, and measures them at the API server: how fast the objects go, how
// many requests that took, and what memory it cost.
//
// All rates come from one watch of the driver's own, from the moment in which
// the owner's DELETE is sent to the event that ends the last dependent, and the
// floor is taken in the same way. So a ratio of two rates compares only what
// deletes. Of namespaces only their own end is watched, and of their floor
// nothing: to see each of their objects go would cost as much as a part of the
// work.
package load
