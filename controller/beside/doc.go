// Package beside finds out whether another garbage collector works in the cluster. It keeps a
// ConfigMap, the canary, whose owner never existed: any garbage collector but Weir deletes it. In
// replace mode nothing is collected before the canary has stood for a while, and Weir ends when
// another collector deletes it later. In companion mode a new canary every minute shows whether the
// built-in collector works, and how long it takes.
//
// Two collectors that work on the same objects do no harm to objects with a living owner. But they
// do not agree on everything (docs/defects.md): the other one deletes what Weir keeps in doubt, and
// no user finds out why.
//
// Goroutines: none of its own; Await, Watch and Measure run until their context ends, one caller at
// a time.
package beside
