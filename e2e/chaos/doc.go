// Package chaos kills Weir, the API server and etcd in the middle of large cascades, and looks
// whether all that was to go went, and nothing else.
//
// A cascade is six owners that are deleted at the same time, flat and tree by background,
// foreground and orphan, beside objects that have another owner or none and must stay. What must
// become of each object is known before anything is deleted: the ledger holds every sighting, and
// at the end every object, against that.
package chaos
