package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// enforcement is a way in which an enforced deletion goes, the objects that it is about, and what
// has to become of them. Names end in #, which stands for the try.
type enforcement struct {
	spec, objects string // of the policy, and what is there
	goes, stays   []string
	owned         map[string]string // the owners of what stays
	// writes are how many requests of weir's it takes at the least, by mode: no steps of which it
	// is said that they were tried are none.
	writes map[mode]int
}

var enforcements = map[string]enforcement{
	"foreground": {
		spec: strings.ReplaceAll(configMaps, "%s", "Foreground"),
		objects: `
			cm  other#
			cm  owner#
			sec one#    owners=(owner#!block)
			sec two#    owners=(owner#!block)
			sec shared# owners=(owner#!block, other#!block)`,
		goes: []string{"owner#", "one#", "two#"}, stays: []string{"other#", "shared#"}, owned: map[string]string{"shared#": "other#!block"},
		writes: map[mode]int{replace: 4, companion: 2},
	},
	"orphan": {
		spec: strings.ReplaceAll(configMaps, "%s", "Orphan"),
		objects: `
			cm  owner#
			sec one# owners=(owner#!block)
			sec two# owners=(owner#!block)`,
		goes: []string{"owner#"}, stays: []string{"one#", "two#"},
		writes: map[mode]int{replace: 4, companion: 2},
	},
	"some are kept": {
		spec: keeping("secrets", `
    default: Background`),
		objects: `
			sec owner#
			cm  one#  owners=(owner#!block)
			cm  two#  owners=(owner#!block)
			rc  leaf# owners=(owner#!block)`,
		goes: []string{"owner#", "leaf#"}, stays: []string{"one#", "two#"},
		writes: map[mode]int{replace: 4, companion: 3},
	},
}

// played is an enforcement in a namespace of its own.
type played struct {
	enforcement
	*fixture
	name  string
	after bool // weir is killed when the request at which it stops has been carried out
}

// named are names in a try.
func (p *played) named(text string, try int) string {
	return strings.ReplaceAll(text, "#", fmt.Sprintf("-%s-%d", p.namespace[len(p.namespace)-5:], try))
}

func (p *played) all(names []string, try int) (out []string) {
	for _, name := range names {
		out = append(out, p.named(name, try))
	}
	return out
}

// controllerKilledAtEachStep kills the controller between any two requests that it sends for an
// enforced deletion, and between any of them and its answer: what is to go goes all the same, and
// what is to stay stays, released.
func (w *fixture) controllerKilledAtEachStep(url string) {
	w.killed(w.weir) // until the end
	s := &steps{}
	kubeconfig := w.kubeconfigThrough("stepwise", func(api *httputil.ReverseProxy) http.Handler {
		s.api = api
		return s
	})
	w.weir = w.runWeir(controllerOptions(w.plane, w.mode, kubeconfig, "stepwise", url))
	var all []*played
	for name, c := range enforcements {
		for _, after := range []bool{false, true} {
			p := &played{c, w.beside(), name, after}
			p.policyNamed("DeletionPolicy", "enforcement-"+p.namespace, c.spec)
			all = append(all, p)
		}
	}
	for _, p := range all {
		p.awaitCondition("DeletionPolicy", "enforcement-"+p.namespace, "Valid", metav1.ConditionTrue)
		p.awaitFinalizerAdded(map[bool]string{true: "cm", false: "sec"}[strings.Contains(p.objects, "cm  owner#")])
	}
	w.bothAreDownWhenItBegins(all)
	killed := map[string]int{}
	const most = 10
	for n := 1; ; n++ {
		stopped := w.killedAtStep(s, n, all)
		for _, p := range stopped {
			killed[p.name]++
		}
		if len(stopped) == 0 {
			break
		}
		if n == most {
			w.Fatalf("weir still writes after %d steps", most)
		}
	}
	w.Logf("%s: killed at so many steps, before and after: %v", w.mode, killed)
	for name, c := range enforcements {
		if killed[name] < 2*c.writes[w.mode] {
			w.Errorf("%s: killed at %d steps, want twice %d at least", name, killed[name], c.writes[w.mode])
		}
	}
	w.settle()
	for try := range most + 1 {
		for _, p := range all {
			for _, name := range p.all(p.stays, try) {
				if _, made := w.made[name]; made {
					w.alive(name)
				}
			}
		}
	}
}

// begin makes the objects of a try, and returns when weir has seen them.
func (w *fixture) begin(all []*played, try int) {
	w.Helper()
	for _, p := range all {
		p.make(p.named(p.objects, try))
		p.awaitFinalizers(p.named("owner#", try), finalizer)
	}
	w.settle()
}

// end waits for the end of a try: all is gone that is to go, and what stays is released.
func (w *fixture) end(all []*played, try int) {
	w.Helper()
	for _, p := range all {
		w.awaitGone(p.all(p.goes, try)...)
		for _, name := range p.stays {
			w.awaitOwners(p.named(name, try), p.named(p.owned[name], try))
		}
		w.alive(p.all(p.stays, try)...)
	}
}

// bothAreDownWhenItBegins: the controller and the webhook are killed when the finalizer is there,
// and no watch sees the deletes.
func (w *fixture) bothAreDownWhenItBegins(all []*played) {
	w.begin(all, 0)
	w.weir.Kill()
	back := w.killed(w.hook)
	for _, p := range all {
		p.delete(p.named("owner#", 0), background)
		p.awaitTerminating(p.named("owner#", 0))
		w.alive(slices.DeleteFunc(p.all(slices.Concat(p.goes, p.stays), 0), func(name string) bool { return strings.HasPrefix(name, "owner-") })...)
	}
	back()
	if err := w.weir.Restart(context.WithoutCancel(w.Context())); err != nil {
		w.Fatal(err)
	}
	w.end(all, 0)
}

// killedAtStep has the n-th write of each enforcement be the last before the controller is killed,
// and returns those that had one.
func (w *fixture) killedAtStep(s *steps, n int, all []*played) (stopped []*played) {
	w.begin(all, n)
	after := map[string]bool{}
	for _, p := range all {
		after[p.namespace] = p.after
	}
	s.stopAt(n, after)
	for _, p := range all {
		p.delete(p.named("owner#", n), background)
	}
	for _, p := range all {
		p.until("it is at the step, or over", func(ctx context.Context) (bool, error) {
			left, err := p.left(ctx, p.all(p.goes, n))
			if came, stands := s.came(p.namespace); len(came) >= n {
				return stands, nil
			}
			return len(left) == 0, err
		})
		came, stands := s.came(p.namespace)
		if stands {
			stopped = append(stopped, p)
			p.Logf("step %d of %s, killed %s it: %v", n, p.name, map[bool]string{true: "after", false: "before"}[p.after], came)
		}
	}
	if len(stopped) > 0 {
		w.weir.Kill()
		s.stopAt(0, nil)
		if err := w.weir.Restart(context.WithoutCancel(w.Context())); err != nil {
			w.Fatal(err)
		}
	}
	s.stopAt(0, nil)
	w.end(all, n)
	return stopped
}

// A policy that cannot be compiled any more holds, under Fail, what terminates: each object says
// so, and when the policy is fixed each goes as it says, and nothing of what it keeps is lost.
func (w *fixture) policyBreaksWhileObjectsTerminate() {
	const n = 60
	name := w.policy("DeletionPolicy", strings.ReplaceAll(configMaps, "%s", "Orphan")+"\n  failurePolicy: Fail")
	w.awaitFinalizerAdded("cm")
	owners, children := numbered("owner", n), numbered("child", n)
	w.makeAll(owners, children)
	w.settle()
	back := w.killed(w.hook) // it would refuse such a policy
	// Weir is not asked about the deletes.
	w.deleteAs(weirUser, owners[:n/2])
	w.repolicy(name, `{"spec":{"match":{"matchConditions":[{"name":"broken","expression":"oldObject.metadata.name =="}]}}}`)
	w.awaitCondition("DeletionPolicy", name, "Ready", metav1.ConditionFalse)
	w.deleteAs(weirUser, owners[n/2:])
	for _, owner := range []string{owners[n/2], owners[n-1]} {
		e := w.awaitEvent(owner, "DeletionHeld")
		w.mustSay(e.Message, name, "Syntax error")
	}
	w.mustBeThere(owners[n/2:]...)
	w.alive(children...)
	w.repolicy(name, `{"spec":{"match":{"matchConditions":null}}}`)
	w.awaitGone(owners...)
	back()
	w.mustBeReleased(children)
}

// repolicy changes a DeletionPolicy by a JSON merge patch.
func (w *fixture) repolicy(name, patch string) {
	w.Helper()
	if _, err := w.dynamic.Resource(policyResources["DeletionPolicy"]).Patch(w.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		w.Fatal(err)
	}
}

// deleteAs deletes objects as a user, some at a time, by background.
func (w *fixture) deleteAs(user string, names []string) {
	w.Helper()
	client := w.impersonating(user, "system:masters")
	w.inParallel(names, func(ctx context.Context, name string) (bool, error) {
		o := w.of(name)
		err := client.Resource(o.gvr()).Namespace(o.namespace).Delete(ctx, o.name, metav1.DeleteOptions{PropagationPolicy: new(background), Preconditions: &metav1.Preconditions{UID: &o.uid}})
		return err == nil, err
	})
}
