// Package metaonly lists and watches the metadata of objects, and decodes no more of it than Weir
// looks at.
//
// What the API server sends of an object is mostly managedFields, labels and annotations, and every
// change of any object in the cluster comes by. So a watch, or a page of a list, decodes an
// object's names, uid, versions, owners and finalizers, and skips the rest where it lies. What it
// does not understand it leaves to client-go's decoder, and its own words for what is kept are
// client-go's, too: it only chooses which bytes to hand over. A page hands on each object as it
// comes, and is never there as a whole; so does ReadList, with all metadata of each. Other lists,
// and single reads, are client-go's alone.
//
// There are no locks and no goroutines of its own.
package metaonly
