package insight

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// mostShares is how many who have to act have a cause of their own, where one object waits for
	// many.
	mostShares = 5
	// mostActors is how many of the others are named.
	mostActors = 10
)

// few leaves the first of the causes that are alike, and makes one of the others, so that all who
// have to act are named. It stands where the first of these stood.
func few(all []Cause, alike func(*Cause) bool, what string) (out []Cause) {
	var rest []Cause
	n, at := 0, 0
	for i := range all {
		if alike(&all[i]) {
			if n++; n > mostShares {
				if rest == nil {
					at = len(out)
				}
				rest = append(rest, all[i])
				continue
			}
		}
		out = append(out, all[i])
	}
	switch len(rest) {
	case 0:
		return all
	case 1:
		return slices.Insert(out, at, rest[0])
	}
	return slices.Insert(out, at, together(rest, what))
}

// together is one cause of several.
func together(all []Cause, what string) Cause {
	c := Cause{Look: all[0].Look, about: all[0].about, shared: all[0].shared}
	var actors []string
	var objects []Object
	met := map[types.UID]bool{}
	for _, one := range all {
		if one.Actor != "" && !slices.Contains(actors, one.Actor) {
			actors = append(actors, one.Actor)
		}
		for _, o := range one.Objects {
			if !met[o.UID] {
				met[o.UID] = true
				objects = append(objects, o)
			}
		}
		c.uids = append(c.uids, one.uids...)
	}
	c.What, c.Objects = what, objects[:min(len(objects), someNames)]
	if len(objects) > 0 {
		c.What += ": " + countedOf(objects, max(len(objects), different(c.uids)))
	}
	c.Actor = strings.Join(actors[:min(len(actors), mostActors)], "; ")
	if more := len(actors) - mostActors; more > 0 {
		c.Actor += fmt.Sprintf("; and %d more", more)
	}
	return c
}

// different is how many uids there are, each counted once.
func different(uids []types.UID) int {
	return len(slices.Compact(slices.Sorted(slices.Values(uids))))
}
