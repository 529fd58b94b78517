// Package metaonly lists and watches the metadata of objects at a cost that Weir can bear for a
// whole cluster. Page and ReadList pass on each object as it comes, and never hold a list as a
// whole. Watches use connections that are read in few, large pieces. Objects are decoded by
// client-go's decoder. Other lists and single reads are left to client-go.
//
// The package has no locks and no goroutines of its own.
package metaonly
