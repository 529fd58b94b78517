package policies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// loss is the objects that go although a policy protects them.
type loss struct {
	by      *compiled
	objects []lost
}

type lost struct {
	resource schema.GroupResource
	name     string // namespace/name if that helps
	confirm  string // the command that confirms it
}

// Decide returns the decision on what was reported so far. With answers to Decision.Discloses its
// message tells more.
func (c *Cascade) Decide(answers map[Access]Answer) Decision {
	d := Decision{Allowed: true}
	v := verdict{set: c.set, q: c.q, others: true, refused: slices.Clone(c.v.refused), warned: slices.Clone(c.v.warned),
		audited: slices.Clone(c.v.audited), errors: c.v.errors}
	q := *c.q
	q.Answers = answers
	c.sort() // objects are read in any order
	for _, l := range c.losses {
		v.add(l.by, c.finding(&q, l, &v), l.by.actions)
	}
	by := slices.IndexFunc(c.guards, func(p *compiled) bool { return !p.onTrial() })
	if !c.binds() && !c.catch.Complete && len(c.losses) == 0 && by >= 0 {
		v.besides = append(v.besides, finding{policy: c.guards[by].key,
			text: "Weir did not look at all dependents of " + c.q.what() + ": " +
				"protected ones are kept, and released from their owners"})
	}
	v.write(&d)
	return d
}

// sort orders losses by policy, and objects by name.
func (c *Cascade) sort() {
	at := func(l *loss) int { return slices.Index(c.set.guards, l.by) }
	slices.SortFunc(c.losses, func(a, b *loss) int { return at(a) - at(b) })
	for _, l := range c.losses {
		slices.SortFunc(l.objects, func(a, b lost) int {
			return cmp.Or(compare(a.resource.String(), b.resource.String()), compare(a.name, b.name))
		})
	}
}

// finding describes a loss for which the request is refused.
func (c *Cascade) finding(q *Question, l *loss, v *verdict) finding {
	shown := c.shown(q, l, v)
	f := finding{policy: l.by.key, code: 403,
		text: fmt.Sprintf("%s may not be deleted: protected objects would be deleted with it: %s", q.what(), c.what(shown))}
	var ways []string
	if !c.binds() && (c.way.by == nil || c.way.by.deletion.allows(v1beta1.Orphan)) {
		ways = append(ways, fmt.Sprintf("To keep them: kubectl delete %s --cascade=orphan", q.kubectl()))
	}
	ways = append(ways, howToDelete(l, shown)...)
	f.way = strings.Join(ways, "\n")
	return f
}

// shown returns what the user may know of a loss.
func (c *Cascade) shown(q *Question, l *loss, v *verdict) AlsoDeleted {
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
	return v.named(q, also)
}

func (c *Cascade) what(shown AlsoDeleted) string {
	if c.early {
		return shown.String() + ", and perhaps more"
	}
	return shown.String()
}

// howToDelete returns how protected objects are deleted, as far as the user may know which they
// are. Nothing follows the command in its line, because users paste it.
func howToDelete(l *loss, shown AlsoDeleted) []string {
	if !l.by.deletion.protection.Confirmation.Asked() {
		return nil
	}
	var out []string
	for _, o := range l.objects[:min(len(l.objects), mostNames)] {
		gr := o.resource.String()
		names := func(k KindCount) bool { return k.Resource == gr && slices.Contains(k.Names, o.name) }
		if slices.ContainsFunc(shown.Kinds, names) {
			out = append(out, o.confirm)
		}
	}
	if len(out) == 0 {
		return []string{"To delete them too, confirm each of them. A user who may list them can see which they are"}
	}
	how := "confirm and delete again"
	if l.by.deletion.protection.Confirmation == v1beta1.ConfirmationSecondPerson {
		how = "have a second person confirm them, and delete again"
	}
	return []string{"To delete them too, " + how + ": " + strings.Join(out, " && ")}
}
