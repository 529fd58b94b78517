package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// ours is the prefix of the identity under which Weir holds the migration Lease.
const ours = "weir_"

// heldKind is the kind by which users see what is held, and decide about it.
const heldKind = "heldcollections"

// installed reports what follows from the flags of the installed controller.
func (f *Facts) installed() (out []Finding) {
	if f.Flags == nil {
		return []Finding{{About: "flags", Grade: Unknown,
			Says: "cannot tell whether a migration Lease is used and whose deletes are held: " + f.why("flags")}}
	}
	if f.Mode == Replace && f.Flags.MigrationLease != "" {
		out = append(out, f.migration())
	}
	if f.Mode == Companion && len(f.Flags.BrakeUsers) > 0 {
		out = append(out, f.brakeUsers())
	}
	return append(out, f.held()...)
}

// migration reports who collects under the migration Lease.
func (f *Facts) migration() Finding {
	m := Finding{About: "migration Lease"}
	l, name := f.MigrationLease, f.Flags.MigrationLease
	switch {
	case l == nil:
		m.Grade, m.Says = Unknown, "who holds the Lease "+name+" is not known: "+f.why("migrationLease")
	case l.Holder == "":
		m.Grade, m.Says = Problem, "no replica holds the Lease "+name+", so no replica collects"
		m.Do = "see that a controller of Weir leads, or start the kube-controller-manager that waits for this Lease"
	case l.Expired:
		m.Grade, m.Says = Problem, fmt.Sprintf("%s held the Lease %s, and has not renewed it for %s: no replica collects",
			l.Holder, name, l.Renewed.Round(time.Second))
		m.Do = "see that a controller of Weir leads: it takes the Lease over"
	case strings.HasPrefix(l.Holder, ours):
		m.Grade, m.Says = OK, fmt.Sprintf("Weir collects under %s (%s)", name, l.Holder)
	default:
		m.Grade, m.Says = Warning, fmt.Sprintf("another process collects under %s (%s), and Weir waits for it", name,
			l.Holder)
		m.Do = "end that process, or run it without the garbage collector and the namespace controller, when Weir is to " +
			"take over"
	}
	return m
}

// migrates reports whether there is a migration Lease. Another collector may then wait for it.
func (f *Facts) migrates() bool {
	return f.Mode == Replace && f.Flags != nil && f.Flags.MigrationLease != ""
}

// waits reports whether another process holds the migration Lease, so that Weir waits for it.
func (f *Facts) waits() bool {
	l := f.MigrationLease
	return l != nil && l.Holder != "" && !l.Expired && !strings.HasPrefix(l.Holder, ours)
}

// brakeUsers reports whether the deletes of the cluster's garbage collector are held.
func (f *Facts) brakeUsers() Finding {
	users := strings.Join(f.Flags.BrakeUsers, ", ")
	b := Finding{About: "brake", Grade: OK, Says: "the webhook holds deletes above the limits by " + users}
	if f.Managers == nil || len(*f.Managers) == 0 {
		b.Grade = Unknown
		b.Says += "; cannot tell whether the cluster's garbage collector is one of them, because kube-controller-manager " +
			"is not seen"
		return b
	}
	for _, m := range *f.Managers {
		if m.collects() && !slices.Contains(f.Flags.BrakeUsers, m.User) {
			b.Grade, b.Says = Warning, fmt.Sprintf("%s deletes as %s, which is not among the users whose deletes are held "+
				"(%s): its deletes are not held", m.Name, m.User, users)
			b.Do = "run kube-controller-manager with --use-service-account-credentials, and name its garbage collector in " +
				"controller.brake.users"
			return b
		}
	}
	return b
}

// asked reports whether the API server asks the webhook.
func (f *Facts) asked() []Finding {
	if f.Asked == nil || f.Mode == Shadow {
		return nil
	}
	a := Finding{About: "webhook", Grade: OK, Says: f.Asked.Says}
	switch f.Asked.Status {
	case "True":
	case "False":
		a.Grade, a.Do = Problem, "see the logs of weir-webhook, and the condition Enforced of policies: until then their "+
			"failurePolicy decides"
	default:
		a.Grade = Unknown
	}
	return []Finding{a}
}

// held reports whether users can decide about what is held.
func (f *Facts) held() []Finding {
	if f.Definitions == nil || slices.Contains(*f.Definitions, heldKind) || f.Mode == Shadow {
		return nil
	}
	h := Finding{About: "brake", Grade: Warning, Do: "install the chart, or kubectl apply -f policies/crds",
		Says: "the API server does not serve " + heldKind +
			": users cannot see what is held, nor decide about it, and Weir forgets it when it ends"}
	if f.Mode == Replace || len(f.Flags.BrakeUsers) > 0 {
		h.Grade = Problem // the brake has limits
	}
	return []Finding{h}
}
