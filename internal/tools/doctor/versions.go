package doctor

import (
	"fmt"
	"strconv"
	"strings"
)

// lack is a feature that some minor versions of Kubernetes 1 lack, or have off by default, and its
// consequence for Weir.
type lack struct {
	of       func(minor int) bool
	is, then string
}

// lacks follow from the feature gates of each version (ListFromCacheSnapshot,
// ConsistentListFromCache, OrderedNamespaceDeletion), by their defaults.
var lacks = []lack{
	{func(minor int) bool { return minor < 34 }, "lists in pages from the watch cache",
		"the lists that Weir starts with are read from etcd, which takes the API server longer"},
	{func(minor int) bool { return minor < 31 }, "consistent lists from the watch cache",
		"the lists by which Weir proves that a namespace is empty, and compares its graph, are read from etcd"},
	{func(minor int) bool { return minor < 33 }, "ordered namespace deletion",
		"the cluster's own namespace controller deletes pods together with everything else, where no DrainPolicy says " +
			"otherwise"},
}

// Lacks returns what a minor version lacks that later ones have, and what follows for Weir.
func Lacks(minor int) (out []string) {
	for _, l := range lacks {
		if l.of(minor) {
			out = append(out, fmt.Sprintf("no %s: %s", l.is, l.then))
		}
	}
	return out
}

// Minor parses a minor version of an API server; managed clusters append a plus. It returns 0 for
// anything else.
func Minor(s string) int {
	n, err := strconv.Atoi(strings.TrimRight(s, "+"))
	if err != nil {
		return 0
	}
	return n
}
