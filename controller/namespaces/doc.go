// Package namespaces empties namespaces that are being deleted, and finalizes them: the work of the
// namespace controller. Package drain decides the next step. This package carries it out, and counts
// the content of namespaces for it.
//
// Goroutines: workers, each of which passes one namespace at a time, and those that wake them;
// Drainer.Run joins them. Drainer's lock guards what is kept of namespaces between passes, outcomes of
// deletes, and who wants a list. A pass belongs to one worker. No request is made under the lock.
package namespaces
