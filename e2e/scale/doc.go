// Package scale makes a cluster of up to a million objects, and takes samples of what is done with
// it: what make bench-scale measures.
package scale
