// Package namespaces empties namespaces that are being deleted and lets them go: the work of the
// namespace controller. What comes next is package drain's to say; here it is done, and what a
// namespace holds is counted for it.
//
// Goroutines: workers that take one namespace at a time, and who wakes them, joined by Drainer.Run.
// Drainer's lock guards what is known of namespaces between passes; a pass itself is of one worker.
// No request is made under a lock, but that for webhook configurations, for which others wait that
// want the same.
package namespaces
