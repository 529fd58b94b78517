package policies

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// Options are what a Set needs besides policies.
type Options struct {
	// Self are the user names that Weir acts under. No policy judges them.
	Self []string
	// Namespace is Weir's own. Propagation does not apply there: no process would carry out the
	// deletion of the process that carries out deletions.
	Namespace string
}

// Set is all policies, compiled. It never changes; any number of goroutines may ask it.
type Set struct {
	policies []*compiled // by kind and name
	shadowed []Problem
	system   []string
	self     []string
	own      string // Weir's namespace

	deletion []*compiled // by priority, then name
	guards   []*compiled // those of them that protect in cascades, too
	owners   []*compiled
	drains   []*compiled
	archives []*compiled // DeletionPolicies that record namespaces
}

// Build compiles policies. It reuses those of previous, which may be nil, that have not changed. A
// policy of the API server takes precedence over one of the same kind and name in a file.
func Build(previous *Set, sources []Source, opts Options) *Set {
	s := &Set{system: slices.Concat(systemUsers, opts.Self), self: opts.Self, own: opts.Namespace}
	slices.Sort(s.system)
	s.system = slices.Compact(s.system)
	s.system = slices.DeleteFunc(s.system, func(u string) bool { return u == "" })

	known := map[PolicyKey]*compiled{}
	if previous != nil {
		for _, c := range previous.policies {
			known[c.key] = c
		}
	}
	byKey := map[PolicyKey]Source{}
	for _, src := range sources {
		key := src.key()
		other, twice := byKey[key]
		if twice {
			loser := src
			if other.File != "" && src.File == "" {
				byKey[key], loser = src, other
			}
			s.shadowed = append(s.shadowed, shadow(loser, byKey[key]))
			continue
		}
		byKey[key] = src
	}
	for key, src := range byKey {
		c := known[key]
		if c == nil || !c.same(src) {
			c = compile(src)
		}
		s.policies = append(s.policies, c)
	}
	slices.SortFunc(s.policies, func(a, b *compiled) int { return a.key.compare(b.key) })
	slices.SortFunc(s.shadowed, compareProblems)

	for _, c := range s.policies {
		switch {
		case c.deletion != nil:
			s.deletion = append(s.deletion, c)
		case c.owners != nil:
			s.owners = append(s.owners, c)
		case c.waves != nil && c.ready():
			s.drains = append(s.drains, c)
		}
	}
	for _, list := range [][]*compiled{s.deletion, s.drains} {
		slices.SortStableFunc(list, func(a, b *compiled) int { return cmp.Compare(b.priority, a.priority) })
	}
	s.guards = slices.DeleteFunc(slices.Clone(s.deletion), func(c *compiled) bool { return !c.guards() })
	s.archives = slices.DeleteFunc(slices.Clone(s.deletion), func(c *compiled) bool { return !c.recordsNamespaces() })
	return s
}

// naming returns those of the policies that are about a resource, in order.
func naming(list []*compiled, gr schema.GroupResource) []*compiled {
	var out []*compiled
	for _, c := range list {
		if c.about(gr) {
			out = append(out, c)
		}
	}
	return out
}

func shadow(loser, winner Source) Problem {
	by := "an object of the API server"
	if winner.File != "" {
		by = winner.File
	}
	return Problem{Policy: loser.key(), File: loser.File, Line: loser.line(), Field: "metadata.name",
		Message: "not in force: " + by + " has a policy of this kind and name"}
}

// Problems returns all problems of the policies, sorted.
func (s *Set) Problems() []Problem {
	out := slices.Clone(s.shadowed)
	for _, c := range s.policies {
		out = append(out, c.problems...)
	}
	slices.SortStableFunc(out, compareProblems)
	return out
}

func compareProblems(a, b Problem) int {
	return cmp.Or(compare(a.File, b.File), cmp.Compare(a.Line, b.Line), a.Policy.compare(b.Policy),
		compare(a.Field, b.Field), compare(a.Message, b.Message))
}

// Status is the state of a policy.
type Status struct {
	Policy PolicyKey
	File   string
	// Ready policies are in force; of the others, Message says why not.
	Ready   bool
	Message string
	// FailsClosed policies refuse what cannot be judged.
	FailsClosed bool
	// Names are the resources that the policy names, in order, without '*'.
	Names []Name
	// Propagates is a DeletionPolicy with a propagation, which adds the finalizer to objects.
	Propagates bool
	// Uncounted: it has conditions, and how many objects meet them would tell what objects hold.
	Uncounted bool
	// Brakes is one with a brake, or an archive, which adds it, too; be it that they are for another policy
	// already.
	Brakes bool
	// Waves are those of a DrainPolicy, in their order.
	Waves string
	// Spec is what a file says; nil of an object. It must not be written to.
	Spec map[string]any
}

// Name is a resource that a policy names in one of the groups, and where.
type Name struct {
	Field    string
	Groups   []string // never empty
	Resource string
}

// Statuses returns the statuses of all policies, by kind and name.
func (s *Set) Statuses() []Status {
	out := make([]Status, len(s.policies))
	for i, c := range s.policies {
		out[i] = Status{Policy: c.key, File: c.source.File, Ready: c.ready(), Message: c.firstError(),
			FailsClosed: c.waves == nil && c.part != PartIgnore && c.judges(), Names: c.mentions,
			Propagates: c.deletion != nil && c.deletion.propagation != nil,
			Brakes:     c.deletion != nil && (c.deletion.brake != nil || c.deletion.archive != nil),
			Waves:      c.waveNames(), Uncounted: c.uncounted()}
		if c.source.File != "" {
			out[i].Spec, _ = c.source.Object["spec"].(map[string]any)
		}
	}
	return out
}

// waveNames returns the names of a DrainPolicy's waves, in order.
func (c *compiled) waveNames() string {
	var names []string
	for _, w := range c.waves {
		names = append(names, w.Name)
	}
	return strings.Join(names, ", ")
}

// NeedsGraph reports whether some policy asks for Facts about objects.
func (s *Set) NeedsGraph() bool {
	return slices.ContainsFunc(s.policies, func(c *compiled) bool {
		switch {
		case c.deletion != nil:
			return c.deletion.brake != nil || c.deletion.protection != nil && (c.deletion.protection.MaxDependents != nil ||
				c.guards())
		case c.owners != nil:
			return asksForOwners(c.owners.Rules)
		}
		return false
	})
}

// asksForOwners reports whether rules are about owners themselves, and not only about their kinds.
func asksForOwners(r *v1beta1.OwnerRules) bool {
	return r != nil && slices.ContainsFunc([]v1beta1.RuleAction{r.Dangling, r.Mismatch, r.OtherNamespace, r.Cycle},
		func(a v1beta1.RuleAction) bool {
			return a != "" && a != v1beta1.RuleIgnore
		})
}

// NeedsKinds reports whether some policy asks for Facts at all, even if only for the kinds that are
// served.
func (s *Set) NeedsKinds() bool {
	return s.NeedsGraph() || slices.ContainsFunc(s.policies, func(c *compiled) bool {
		return c.owners != nil && (c.owners.Rules != nil || c.owners.BlockOwnerDeletion == v1beta1.BlockRequirePermission)
	})
}

// AddsFinalizer reports whether objects of a resource may have to carry Weir's finalizer, or
// whether that is unknown because a policy is broken. full reports whether telling takes more than
// their metadata.
func (s *Set) AddsFinalizer(gr schema.GroupResource) (some, full bool) {
	if !propagates(gr) {
		return false, false
	}
	for _, c := range naming(s.deletion, gr) {
		some = some || c.mayAdd(gr)
		full = full || len(c.conditions) > 0
	}
	return some, full
}

// mayAdd reports whether the policy may want the finalizer on objects of a resource, or would if it
// were not broken.
func (c *compiled) mayAdd(gr schema.GroupResource) bool {
	return propagates(gr) && !c.onTrial() && (!c.ready() || c.deletion.addsFinalizer(gr))
}

// LooksBeyondMetadata reports whether a condition or message of some DeletionPolicy about a
// resource needs more of an object than its metadata.
func (s *Set) LooksBeyondMetadata(gr schema.GroupResource) bool {
	return slices.ContainsFunc(naming(s.deletion, gr), (*compiled).tellsBeyondMetadata)
}

// Decide answers a question. It does not change the question, and asking again gives the same
// answer.
func (s *Set) Decide(q Question) Decision {
	d := Decision{Allowed: true}
	if err := q.check(); err != nil {
		// An API server does not send this, so the sender is not let past.
		return Decision{Code: 400, Reason: metav1.StatusReasonBadRequest, Message: err.Error()}
	}
	switch q.Operation {
	case Delete:
		switch q.Asked {
		case "", WebhookDelete:
			s.decideDelete(&q, &d)
		case WebhookGuard:
			v := verdict{set: s, q: &q}
			s.guard(&q, &v)
			v.write(&d)
		}
	case Create, Update:
		s.decideWrite(&q, &d)
	}
	return d
}
