// Package metaonly lists and watches the metadata of objects, at a cost that Weir can bear for a
// whole cluster: a page of a list hands on each object as it comes, and is never there as a whole; so
// does ReadList. Watches come by connections that are read in few and large pieces. Each object is
// read by client-go's decoder. What is not understood of a list is left to client-go, as are other
// lists and single reads.
//
// There are no locks and no goroutines of its own.
package metaonly
