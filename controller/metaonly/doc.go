// Package metaonly lists and watches the metadata of objects. Page passes on each object as it
// comes, and never holds a list as a whole: labels and annotations of others may be more than fits
// in memory. Watches use connections that are read in few, large pieces. Objects are decoded by
// client-go's decoder. No request is sent again by client-go, which would hide a refusal, and wait
// with it.
//
// The package has no locks and no goroutines.
package metaonly
