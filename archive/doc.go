// Package archive keeps what was deleted: the objects of a tree as the API server gave them.
//
//	objects ─▶ one stream ─▶ zstd ─▶ pieces of at most 1 MiB ─▶ AES-GCM ─▶ ArchiveChunks ◀─owns─ DeletedTree
//
// Each tree has a key of its own, which is in its DeletedTree, wrapped by the archive's key, which
// is in a Secret in Weir's namespace. So who may read that Secret and the archive reads what was
// recorded, and nobody else; and a tree whose DeletedTree is gone is noise. The name of the tree,
// the place of a chunk, and whether it is the last are sealed with the content: what is cut off,
// in another order, or of another tree is refused.
//
// Seal and Open are pure, and hold one chunk and one object in memory, however large the tree is.
// Store is the edge.
package archive
