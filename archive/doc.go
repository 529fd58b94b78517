// Package archive keeps what was deleted: the objects of a tree as the API server gave them.
//
//	objects ─▶ one stream ─▶ zstd ─▶ pieces of at most 1 MiB ─▶ AES-GCM ─▶ ArchiveChunks ◀─owns─ DeletedTree
//
// Each tree has a key of its own. It is in the DeletedTree, wrapped by the archive's key, which is
// in a Secret in Weir's namespace. So only those who may read that Secret and the archive can read
// what was recorded, and a tree whose DeletedTree is gone cannot be read. The name of the tree, the
// place of a chunk, and whether it is the last are authenticated with the content: a tree that is
// cut off, reordered or mixed with another is refused.
//
// Seal and Open are pure, and hold one chunk and one object in memory, however large the tree is.
// Store does the I/O.
package archive
