package enforce_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
)

// heldMap is a ConfigMap that terminates and carries Weir's finalizer.
func heldMap(name, more string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: shop, deletionTimestamp: '2000-01-01T00:00:00Z', "+
		"finalizers: [weir.dev/propagation]%s}}", name, more)
}

func owned(kind, name, owner string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: %s, metadata: {name: %s, namespace: shop, ownerReferences: "+
		"[{apiVersion: v1, kind: ConfigMap, name: %s, uid: uid-%s, blockOwnerDeletion: true}]}}", kind, name, owner, owner)
}

// policy is a DeletionPolicy about ConfigMaps.
func policy(name, spec string) string {
	return fmt.Sprintf("{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: %s, generation: 1}, spec: "+
		"{match: {resources: [{apiGroups: [''], resources: [configmaps]}]}, %s}}", name, spec)
}

// changes are the requests about single objects of the shop since the last call, with the
// finalizers that patches leave.
func changes(c *clustertest.Cluster) (all []string) {
	for _, r := range c.Sent() {
		of, inShop := strings.CutPrefix(r.Path, "/api/v1/namespaces/shop/")
		kind, name, single := strings.Cut(of, "/")
		if !inShop || !single || kind == "events" {
			continue
		}
		text := r.Method + " " + name
		if r.Method == http.MethodDelete {
			for _, p := range []string{"Background", "Foreground", "Orphan"} {
				if strings.Contains(r.Body, p) {
					text += " " + p
				}
			}
		}
		if strings.Contains(r.Body, `"finalizers"`) {
			text += " finalizers"
		}
		if strings.Contains(r.Body, `"ownerReferences"`) {
			text += " owners"
		}
		all = append(all, text)
	}
	return all
}

// wantChanges compares them, in any order, but for those that do not count. Where a DELETE wrote
// Orphan down, the graph may be faster than what rules: then the two finalizers come off one after
// the other, and the second may have to look first.
func wantChanges(c *clustertest.Cluster, want []string, uncounted ...string) {
	c.Helper()
	if slices.Contains(want, "DELETE a Orphan") {
		uncounted = append(uncounted, "GET a")
	}
	got := slices.DeleteFunc(changes(c), func(s string) bool { return slices.Contains(uncounted, s) })
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	if slices.Contains(want, "DELETE a Orphan") {
		got = slices.Compact(got)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestHeldDeletionsCostWhatTheyMust: what terminates is decided about as the watch shows it.
// Nothing is read.
func TestHeldDeletionsCostWhatTheyMust(t *testing.T) {
	for name, x := range map[string]struct {
		spec      string
		objects   map[string]string // by resource/name
		companion []string
		replace   []string
	}{
		"no dependents, Foreground": {"propagation: {default: Foreground}", nil,
			[]string{"PATCH a finalizers"}, []string{"PATCH a finalizers"}},
		"no dependents, Orphan": {"propagation: {default: Orphan}", nil,
			[]string{"PATCH a finalizers"}, []string{"PATCH a finalizers"}},
		"Foreground": {"propagation: {default: Foreground}", map[string]string{"pods/p": owned("Pod", "p", "a")},
			[]string{"DELETE a Foreground", "PATCH a finalizers"}, []string{"GET a", "DELETE p Background", "PATCH a finalizers"}},
		"Orphan": {"propagation: {default: Orphan}", map[string]string{"pods/p": owned("Pod", "p", "a")},
			[]string{"DELETE a Orphan", "PATCH a finalizers"}, []string{"DELETE a Orphan", "PATCH p owners", "PATCH a finalizers"}},
		"some are kept": {"propagation: {default: Foreground, dependents: [{apiGroups: [''], resources: [pods], action: Orphan}]}",
			map[string]string{"pods/p": owned("Pod", "p", "a"), "secrets/c": owned("Secret", "c", "a")},
			[]string{"PATCH p owners", "DELETE a Foreground", "PATCH a finalizers"},
			[]string{"PATCH p owners", "GET a", "DELETE c Background", "PATCH a finalizers"}},
		"a condition about the whole": {`propagation: {default: Foreground}, match: {resources: [{apiGroups: [''], resources: [configmaps]}], matchConditions: [{name: c, expression: "!has(oldObject.data)"}]}`, nil,
			[]string{"GET a", "PATCH a finalizers"}, []string{"GET a", "PATCH a finalizers"}},
	} {
		for _, companion := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, companion=%t", name, companion), func(t *testing.T) {
				clustertest.Run(t, func(c *clustertest.Cluster) {
					c.Serve("v1", "secrets", "Secret", true, clustertest.AllVerbs)
					c.API.Put("deletionpolicies", policy("p", x.spec))
					c.API.Put("configmaps", strings.Replace(heldMap("a", ""), ", deletionTimestamp: '2000-01-01T00:00:00Z'", "", 1))
					for key, text := range x.objects {
						resource, _, _ := strings.Cut(key, "/")
						c.API.Put(resource, text)
					}
					c.Obey()
					c.Options.Companion = companion
					c.Start()
					changes(c)
					c.API.Put("configmaps", heldMap("a", ""))
					c.Pass(time.Second)
					want := x.replace
					if companion {
						want = x.companion
					}
					wantChanges(c, want)
				})
			})
		}
	}
}

// TestPoliciesThatChangeWhileADeletionIsHeld: what is held goes on as policies say then, without a
// further event about it.
func TestPoliciesThatChangeWhileADeletionIsHeld(t *testing.T) {
	foreground := policy("p", "propagation: {default: Foreground}")
	undecided := policy("p", `propagation: {default: Foreground}, failurePolicy: Fail, match: {resources: [{apiGroups: [''], resources: [configmaps]}], matchConditions: [{name: c, expression: "oldObject.metadata.labels.x == 'y'"}]}`)
	for name, x := range map[string]struct {
		before, after string // after: none if empty
		held          string // what an Event says before
		want          []string
	}{
		"the policy goes": {foreground, "", "", []string{"PATCH a finalizers"}},
		"it wants its dependents kept": {foreground, policy("p", "propagation: {default: Orphan}"), "",
			[]string{"DELETE a Orphan", "PATCH p owners", "PATCH a finalizers"}},
		"it could not be judged": {undecided, policy("p", "propagation: {default: Background}"),
			"a DeletionHeld: the deletion is held: a policy with failurePolicy Fail may apply", []string{"PATCH a finalizers"}},
	} {
		t.Run(name, func(t *testing.T) {
			clustertest.Run(t, func(c *clustertest.Cluster) {
				c.API.Put("deletionpolicies", x.before)
				c.API.Put("configmaps", strings.Replace(heldMap("a", ""), ", deletionTimestamp: '2000-01-01T00:00:00Z'", "", 1))
				c.API.Put("pods", strings.Replace(owned("Pod", "p", "a"), "metadata: {", "metadata: {finalizers: [example.com/f], ", 1))
				c.Obey()
				c.Start()
				c.API.Put("configmaps", heldMap("a", ""))
				c.Pass(time.Second)
				c.MustBeThere("configmaps/shop/a")
				if x.held != "" && len(c.Reported(x.held)) != 1 {
					c.Errorf("Events: %q, want one that says %q", c.Reported(""), x.held)
				}
				changes(c)
				if c.API.Remove("deletionpolicies.weir.dev/p"); x.after != "" {
					c.API.Put("deletionpolicies", x.after)
				}
				c.Pass(2 * time.Second)
				wantChanges(c, x.want, "DELETE p Background")
			})
		})
	}
}

// TestFinalizerThatCannotBeTakenOff: who is against it is told, once, and it is tried again.
func TestFinalizerThatCannotBeTakenOff(t *testing.T) {
	for _, companion := range []bool{true, false} {
		clustertest.Run(t, func(c *clustertest.Cluster) {
			c.API.Put("deletionpolicies", policy("p", "propagation: {default: Foreground}"))
			c.Obey()
			c.Options.Companion = companion
			c.Reply(func(r apitest.Request) *apitest.Reply {
				if r.Method == http.MethodPatch {
					return apitest.Refuse(403, "Forbidden", `admission webhook "w" denied the request: never`)
				}
				return nil
			})
			c.Start()
			changes(c)
			c.API.Put("configmaps", heldMap("a", ""))
			c.Pass(time.Minute)
			if all := changes(c); len(all) < 5 || len(all) > 20 {
				n := fmt.Sprint(len(all), all)
				c.Errorf("tried %s times within a minute, companion=%t", n, companion)
			}
			if told := c.Reported("a CollectionRefused"); len(told) != 1 || !strings.Contains(told[0], "never") {
				c.Errorf("Events: %q, companion=%t", c.Reported(""), companion)
			}
			c.Reply(nil)
			c.Pass(time.Minute)
			if c.API.Get("configmaps/shop/a") != nil {
				c.Errorf("it is still there, companion=%t", companion)
			}
		})
	}
}

// TestOrphanThatIsTakenOffIsWrittenDownAgain: whoever writes a stale copy of the object takes it
// off, and its dependents would be collected.
func TestOrphanThatIsTakenOffIsWrittenDownAgain(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.API.Put("deletionpolicies", policy("p", "propagation: {default: Orphan}"))
		c.API.Put("configmaps", strings.Replace(heldMap("a", ""), ", deletionTimestamp: '2000-01-01T00:00:00Z'", "", 1))
		c.API.Put("pods", owned("Pod", "p", "a"))
		c.Obey()
		c.Options.Companion = true
		c.Start()
		writes, writtenDown := 0, 0
		c.Reply(func(r apitest.Request) *apitest.Reply {
			now, _ := c.API.Get("configmaps/shop/a")["metadata"].(map[string]any)
			finalizers, _ := now["finalizers"].([]any)
			orphans := slices.Contains(finalizers, any("orphan"))
			// Decisions that rest on what the watch has not corrected yet meet a conflict.
			counts := strings.Contains(r.Body, fmt.Sprintf(`"resourceVersion":"%v"`, now["resourceVersion"]))
			switch {
			case r.Method == http.MethodDelete && counts && !orphans:
				writtenDown++
			case r.Method == http.MethodPatch && counts && !orphans:
				c.Errorf("the finalizer is removed from what has the finalizers %v: %s", finalizers, r.Body)
			}
			if r.Method == http.MethodPatch && writes < 2 {
				writes++
				c.API.Put("configmaps", heldMap("a", ""))
			}
			return nil
		})
		c.API.Put("configmaps", heldMap("a", ""))
		c.Pass(5 * time.Second)
		if writtenDown < 3 {
			c.Errorf("orphan is written down %d times, want 3 at the least: %q", writtenDown, changes(c))
		}
		if now, _ := c.API.Get("configmaps/shop/a")["metadata"].(map[string]any); !cmp.Equal(now["finalizers"], any([]any{"orphan"})) {
			c.Errorf("it has the finalizers %v, want orphan", now["finalizers"])
		}
		c.MustBeThere("pods/shop/p")
	})
}

// TestHeldObjectThatIsWrittenAllTheTime: a conflict is followed by a read and another decision, and
// then by nothing but the watch.
func TestHeldObjectThatIsWrittenAllTheTime(t *testing.T) {
	for _, companion := range []bool{true, false} {
		clustertest.Run(t, func(c *clustertest.Cluster) {
			c.API.Put("deletionpolicies", policy("p", "propagation: {default: Foreground}"))
			c.Obey()
			c.Options.Companion = companion
			c.Start()
			writes := 0
			c.Reply(func(r apitest.Request) *apitest.Reply {
				if r.Method == http.MethodPatch && writes < 2 {
					writes++
					c.API.Put("configmaps", heldMap("a", fmt.Sprintf(", labels: {n: '%d'}", writes)))
				}
				return nil
			})
			c.API.Put("configmaps", heldMap("a", ""))
			c.Pass(5 * time.Second)
			if c.API.Get("configmaps/shop/a") != nil || writes != 2 {
				c.Errorf("it is still there after %d writes, companion=%t", writes, companion)
			}
		})
	}
}
