package policies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1alpha1"
)

// loss is what goes that a policy protects.
type loss struct {
	by      *compiled
	objects []lost
}

type lost struct {
	resource schema.GroupResource
	name     string // namespace/name where that helps
	confirm  string // how to
}

// Decide is the decision on what has been said. With answers to Decision.Discloses it tells more.
func (c *Cascade) Decide(answers map[Access]Answer) Decision {
	d := Decision{Allowed: true}
	if c.self != nil && !c.isDoomed() {
		return d
	}
	v := verdict{set: c.set, q: c.q, refused: slices.Clone(c.v.refused), warned: slices.Clone(c.v.warned), audited: slices.Clone(c.v.audited), errors: c.v.errors}
	q := *c.q
	q.Answers = answers
	if c.self != nil {
		for _, f := range c.againstSelf(&v, answers) {
			f.text = c.doom() + ": " + f.text
			f.way = strings.Join(slices.DeleteFunc([]string{"Name an owner that is there", f.way}, func(s string) bool { return s == "" }), ". ")
			by := c.policy(f.policy)
			v.add(by, f, by.actions)
		}
	}
	c.sort() // objects are read in any order
	for _, l := range c.losses {
		v.add(l.by, c.finding(&q, l, &v), l.by.actions)
	}
	v.write(&d)
	return d
}

// sort puts what goes into the order of the policies, and of names.
func (c *Cascade) sort() {
	at := func(l *loss) int { return slices.Index(c.set.guards.all, l.by) }
	slices.SortFunc(c.losses, func(a, b *loss) int { return at(a) - at(b) })
	for _, l := range c.losses {
		slices.SortFunc(l.objects, func(a, b lost) int {
			return cmp.Or(compare(a.resource.String(), b.resource.String()), compare(a.name, b.name))
		})
	}
}

// againstSelf is what the policies have against the delete of the object whose references are edited.
func (c *Cascade) againstSelf(v *verdict, answers map[Access]Answer) []finding {
	self := *c.self
	self.Answers = answers
	own := verdict{set: c.set, q: &self}
	out := c.against(&self, &own)
	v.discloses = append(v.discloses, own.discloses...)
	return out
}

// finding is a loss in words.
func (c *Cascade) finding(q *Question, l *loss, v *verdict) finding {
	var also AlsoDeleted
	for _, o := range l.objects {
		i := slices.IndexFunc(also.Kinds, func(k KindCount) bool { return k.Resource == o.resource.String() })
		if i < 0 {
			i = len(also.Kinds)
			also.Kinds = append(also.Kinds, KindCount{Resource: o.resource.String()})
		}
		k := &also.Kinds[i]
		k.Count, k.Names = k.Count+1, append(k.Names, o.name)
	}
	shown := v.named(q, also)
	what := shown.String()
	if c.early {
		what += ", and perhaps more"
	}
	f := finding{policy: l.by.key, code: 403}
	ways := []string{"Name an owner that is there"}
	if c.self != nil {
		f.text = fmt.Sprintf("%s, and with it what is protected: %s", c.doom(), what)
	} else {
		f.text = fmt.Sprintf("%s may not be deleted: what is protected would be deleted with it: %s", q.what(), what)
		ways = nil
		if !q.isNamespace() && !q.isCRD() && (c.way.by == nil || c.way.by.deletion.allows(v1alpha1.Orphan)) {
			ways = append(ways, fmt.Sprintf("To keep them: kubectl delete %s --cascade=orphan", q.kubectl()))
		}
	}
	f.way = strings.Join(append(ways, c.howToDelete(l, shown)...), ". ")
	return f
}

// howToDelete is how protected objects are deleted, as far as the user may know which they are.
func (c *Cascade) howToDelete(l *loss, shown AlsoDeleted) []string {
	if l.by.deletion.protection.Confirmation != v1alpha1.ConfirmationRequired {
		return nil
	}
	var out []string
	for _, o := range l.objects[:min(len(l.objects), mostNames)] {
		if slices.ContainsFunc(shown.Kinds, func(k KindCount) bool { return k.Resource == o.resource.String() && len(k.Names) > 0 }) {
			out = append(out, o.confirm)
		}
	}
	if len(out) == 0 {
		return []string{"To delete them too, each has to be confirmed; who may list them can see which they are"}
	}
	return []string{"To delete them too: " + strings.Join(out, "; ") + ", and try again"}
}
