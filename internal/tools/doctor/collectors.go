package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

const (
	// stood is how old a canary has to be: the built-in collector may be busy for seconds.
	stood   = 30 * time.Second
	restart = "see the log of kube-controller-manager, or run Weir in replace mode"
)

// collector reports whether a garbage collector other than this Weir works. What happened to an
// object counts more than flags.
func (f *Facts) collector() Finding {
	c := Finding{About: "garbage collector"}
	by, works, known := f.collects()
	if e := f.unread("try"); e != "" {
		by += "; --try failed: " + e
	}
	switch {
	case !known:
		c.Grade, c.Says = Unknown, "cannot tell whether a garbage collector works: "+by
		c.Do = "run it with --try, which creates a ConfigMap whose owner never existed, and waits for its end"
	case works && f.Mode == Replace:
		off := "-garbage-collector-controller"
		if f.drains() {
			off += ",-namespace-controller"
		}
		c.Grade, c.Says = Problem, "a garbage collector works that is not Weir ("+by+"), and in replace mode Weir "+
			"does not work beside another"
		c.Do = "append " + off + " to kube-controller-manager's --controllers (* by default), or run Weir in companion mode"
	case works:
		c.Grade, c.Says = OK, "the cluster's own works ("+by+")"
	case f.Mode != Replace:
		c.Grade, c.Says = Problem, "none works ("+by+"), and in "+f.Mode+" mode Weir needs one: garbage stays"
		c.Do = restart
	default:
		c.Grade, c.Says = OK, "none works but Weir ("+by+")"
	}
	return c
}

// collects returns whether a garbage collector other than Weir works, and how that is known, or why
// it is not.
func (f *Facts) collects() (by string, works, known bool) {
	switch {
	case f.Canary >= stood: // before Tried: Weir deletes that object, too
		return fmt.Sprintf("ConfigMap weir-collector-canary has stood for %s", f.Canary.Round(time.Second)), false, true
	case f.Tried != nil && f.Tried.Deleted:
		return fmt.Sprintf("an object whose owner never existed was deleted after %s",
			f.Tried.Took.Round(time.Millisecond)), true, true
	case f.Tried != nil:
		return fmt.Sprintf("an object whose owner never existed stood for %s", f.Tried.Took.Round(time.Second)), false, true
	}
	return f.byFlags("garbage collector", Manager.collects)
}

// byFlags returns whether some kube-controller-manager does a work, as far as its flags and its
// Lease tell.
func (f *Facts) byFlags(what string, does func(Manager) bool) (by string, works, known bool) {
	if why := f.unread("managers"); why != "" {
		return "the pods of kube-system cannot be read: " + why, false, false
	}
	if len(f.Managers) == 0 {
		if l := f.ManagerLease; l.held() {
			return fmt.Sprintf("kube-controller-manager runs (%s holds its Lease), outside of the cluster, and its flags "+
				"are not known", l.Holder), false, false
		}
		return "no kube-controller-manager is seen, neither as a pod of kube-system nor by its Lease", false, false
	}
	for _, m := range f.Managers {
		if does(m) {
			return fmt.Sprintf("%s runs with --controllers=%s", m.Name, m.Controllers), true, true
		}
	}
	return fmt.Sprintf("%s runs with --controllers=%s, which has no %s", f.Managers[0].Name, f.Managers[0].Controllers,
		what), false, true
}

func (f *Facts) namespaceController() Finding {
	if len(f.Waiting) > 0 { // it counts more than flags
		return f.waiting()
	}
	n := Finding{About: "namespace controller"}
	switch by, works, known := f.byFlags("namespace controller", Manager.drains); {
	case !known:
		n.Grade, n.Says = Unknown, "cannot tell whether one works: "+by
	case works && f.drains():
		n.Grade, n.Says = Problem, "one works that is not Weir ("+by+"): both empty namespaces, and the other one knows "+
			"no waves"
		n.Do = "turn it off (append -namespace-controller to kube-controller-manager's --controllers), or run Weir with " +
			"--drain-namespaces=false"
	case works:
		n.Grade, n.Says = OK, "the cluster's own works ("+by+")"
	case f.drains():
		n.Grade, n.Says = OK, "none works but Weir ("+by+")"
	case f.Mode == Replace:
		n.Grade, n.Do = Problem, "turn it on, or run Weir with --drain-namespaces"
		n.Says = "none works (" + by + "), and Weir runs with --drain-namespaces=false: namespaces stay Terminating"
	default:
		n.Grade, n.Do = Problem, "turn it on, or run Weir in replace mode"
		n.Says = "none works (" + by + "), and in " + f.Mode + " mode Weir needs one: namespaces stay Terminating"
	}
	return n
}

// waiting reports the namespace that has waited longest for a namespace controller.
func (f *Facts) waiting() Finding {
	w := slices.MaxFunc(f.Waiting, func(a, b Waiting) int { return cmp.Compare(a.For, b.For) })
	n := Finding{About: "namespace controller", Grade: Problem, Do: restart, Says: fmt.Sprintf("none works: namespace %s "+
		"has been Terminating for %s, and no namespace controller has begun with it", w.Name, w.For.Round(time.Second))}
	if others := len(f.Waiting) - 1; others > 0 {
		n.Says += fmt.Sprintf(", nor with %d others", others)
	}
	if f.drains() {
		n.Do = "see the log of the weir-controller that leads"
	}
	return n
}
