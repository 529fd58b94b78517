package undo

import (
	"strings"
	"testing"
	"time"
)

// trees parses NAMESPACE/NAME=BYTES, the oldest first; ! marks a tree that is not durable, + one
// whose root is held.
func treesOf(text string) (all []entry) {
	for i, f := range strings.Fields(text) {
		where, size, _ := strings.Cut(f, "=")
		namespace, name, _ := strings.Cut(where, "/")
		all = append(all, entry{name: strings.Trim(name, "!+"), namespace: namespace, made: time.Unix(int64(i), 0), bytes: int64(len(size)),
			durable: !strings.Contains(name, "!"), root: name})
	}
	return all
}

// TestWhoHasMoreThanItsShareGivesItsOldest: the archive holds ten bytes.
func TestWhoHasMoreThanItsShareGivesItsOldest(t *testing.T) {
	for name, c := range map[string]struct{ trees, want string }{
		"there is room":                 {"a/1=## a/2=## a/new!=##", ""},
		"its own oldest":                {"a/1=#### a/2=### a/new!=#####", "1"},
		"as many as it takes":           {"a/1=#### a/2=### a/3=### a/new!=#######", "1 2"},
		"its own, not another's":        {"b/0=#### a/1=#### a/new!=###", "1"},
		"another has more than a share": {"b/0=#### b/1=##### a/new!=##", "0"},
		"not what is held still":        {"a/1+=#### a/2=### a/new!=#####", "2"},
		"not what is written":           {"a/1!=#### a/2=### a/new!=#####", "2"},
		"too large for all":             {"a/1=# a/new!=###########", "none"},
		"too large for its share":       {"b/0=##### a/new!=########", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			trees := treesOf(c.trees)
			out, ok := evict(trees, trees[len(trees)-1], 10, func(e entry) bool { return !strings.Contains(e.root, "+") })
			var names []string
			for _, e := range out {
				names = append(names, e.name)
			}
			got := strings.Join(names, " ")
			if !ok {
				got = "none"
			}
			if got != c.want {
				t.Errorf("%q go, want %q", got, c.want)
			}
		})
	}
}
