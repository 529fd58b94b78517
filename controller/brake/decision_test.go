package brake_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/controller/brake"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
)

// heldMaps is what is held because of owners that are ConfigMaps.
const heldMaps = "heldcollections.weir.dev/configmaps"

// held runs a test where n pods have owners that never were, more than the limit, so that all are
// held.
func held(t *testing.T, n int, test func(c *clustertest.Cluster, stop func())) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Options.Brake = brake.Limits{Most: 2, Objects: 2, Share: 1}
		for i := range n {
			orphan(c, i)
		}
		stop := c.Start()
		c.Pass(time.Minute)
		if left := leftOf(c, n); left != n || saysHeld(c, "held") != fmt.Sprint(n) {
			c.Fatalf("%d of %d pods are left; %v", left, n, c.API.Get(heldMaps)["status"])
		}
		test(c, stop)
	})
}

// orphan makes a pod whose owner never was.
func orphan(c *clustertest.Cluster, i int) {
	c.API.Put("pods", fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: p%d, namespace: shop, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: never%d, uid: never%d}]}}", i, i, i))
}

func leftOf(c *clustertest.Cluster, n int) (left int) {
	for i := range n {
		if c.API.Get(fmt.Sprint("pods/shop/p", i)) != nil {
			left++
		}
	}
	return left
}

// saysHeld reads a field of the HeldCollection's status, or its condition's message; "" if there is
// none.
func saysHeld(c *clustertest.Cluster, field string) string {
	status, _ := c.API.Get(heldMaps)["status"].(map[string]any)
	if conditions, _ := status["conditions"].([]any); field == "message" && len(conditions) == 1 {
		status = conditions[0].(map[string]any)
	}
	if status[field] == nil {
		return ""
	}
	return fmt.Sprint(status[field])
}

// proceed is a person who decides.
func proceed(c *clustertest.Cluster, digest string) { decide(c, "Proceed", digest) }

func decide(c *clustertest.Cluster, decision, digest string) {
	h := c.API.Get(heldMaps)
	h["spec"] = map[string]any{"decision": decision, "digest": digest}
	c.Put("heldcollections", h)
}

// refusePods has the API server refuse all changes of pods.
func refusePods(c *clustertest.Cluster) {
	c.Reply(func(r apitest.Request) *apitest.Reply {
		if (r.Method == http.MethodDelete || r.Method == http.MethodPatch) && strings.Contains(r.Path, "/pods/") {
			return apitest.Refuse(403, "Forbidden", `admission webhook "not.now" denied the request: not now`)
		}
		return nil
	})
}

// TestWhatIsDiscardedIsReleased: each object loses its reference by one patch, for its uid and
// version, nothing is deleted, and the hold ends.
func TestWhatIsDiscardedIsReleased(t *testing.T) {
	held(t, 6, func(c *clustertest.Cluster, _ func()) {
		orphan(c, 6) // not by then
		c.Sent()
		decide(c, "Discard", saysHeld(c, "digest"))
		c.Pass(10 * time.Minute)
		patched := map[string]int{}
		for _, r := range c.Sent() {
			switch _, pod, is := strings.Cut(r.Path, "/pods/"); {
			case !is:
			case r.Method == http.MethodDelete && !strings.Contains(r.Body, "dryRun"):
				c.Errorf("%s", r)
			case r.Method == http.MethodPatch:
				if patched[pod]++; !strings.Contains(r.Body, `"ownerReferences":null`) ||
					!strings.Contains(r.Body, `"resourceVersion":"`) || !strings.Contains(r.Body, `"uid":"`) {
					c.Errorf("%s", r)
				}
			}
		}
		if left := leftOf(c, 7); left != 7 || len(patched) != 6 || patched["p6"] != 0 || saysHeld(c, "held") != "1" {
			c.Errorf("%d of 7 are left, patched %v; %v", left, patched, c.API.Get(heldMaps)["status"])
		}
		meta := c.API.Get("pods/shop/p0")["metadata"].(map[string]any)
		why := fmt.Sprint(meta["annotations"])
		if want := `kept, because a person has decided so: HeldCollection "configmaps"`; !strings.Contains(why, want) {
			c.Errorf("%q does not say %q", why, want)
		}
		decide(c, "Discard", saysHeld(c, "digest"))
		c.Pass(10 * time.Minute)
		if left := leftOf(c, 7); left != 7 || c.API.Get(heldMaps) != nil {
			c.Errorf("%d of 7 are left; %v", left, c.API.Get(heldMaps))
		}
	})
}

// TestWhatIsDiscardedStaysHoweverLongItTakes: an admission webhook refuses the patches for ten
// minutes, and objects are edited meanwhile. The hold does not end before they are released: alone
// they would be fewer than the limit.
func TestWhatIsDiscardedStaysHoweverLongItTakes(t *testing.T) {
	held(t, 6, func(c *clustertest.Cluster, _ func()) {
		refusePods(c)
		decide(c, "Discard", saysHeld(c, "digest"))
		c.Pass(5 * time.Minute)
		o := c.API.Get("pods/shop/p0")
		o["metadata"].(map[string]any)["labels"] = map[string]any{"edited": "true"}
		c.Put("pods", o)
		c.Pass(5 * time.Minute)
		if message := saysHeld(c, "message"); !strings.Contains(message, "not carried out yet for 6 objects") {
			c.Errorf("%s", message)
		}
		c.Reply(nil)
		c.Pass(10 * time.Minute)
		if left := leftOf(c, 6); left != 6 || c.API.Get(heldMaps) != nil {
			c.Errorf("%d of 6 are left; %v", left, c.API.Get(heldMaps))
		}
		for i := range 6 {
			if o := c.API.Get(fmt.Sprint("pods/shop/p", i)); o["metadata"].(map[string]any)["ownerReferences"] != nil {
				c.Errorf("%v", o)
			}
		}
	})
}

// TestOneDecisionIsEnoughHoweverLongItTakes: an admission webhook refuses the deletes for ten
// minutes. The hold does not end while they are tried, so that they need no second decision; and it
// says what it waits for.
func TestOneDecisionIsEnoughHoweverLongItTakes(t *testing.T) {
	held(t, 6, func(c *clustertest.Cluster, _ func()) {
		refusePods(c)
		proceed(c, saysHeld(c, "digest"))
		c.Pass(10 * time.Minute)
		if message := saysHeld(c, "message"); leftOf(c, 6) != 6 || !strings.Contains(message, "not carried out yet for 6 objects") {
			c.Errorf("%d of 6 are left: %s", leftOf(c, 6), message)
		}
		c.Reply(nil)
		c.Pass(10 * time.Minute)
		if left := leftOf(c, 6); left != 0 || c.API.Get(heldMaps) != nil {
			c.Errorf("%d of 6 are left; %v", left, c.API.Get(heldMaps))
		}
	})
}

// TestADecisionCountsHoweverMuchCameSince: while a person thinks, a client makes an object each ten
// seconds that is held, too. What the person has read about goes, and what came since stays.
func TestADecisionCountsHoweverMuchCameSince(t *testing.T) {
	held(t, 6, func(c *clustertest.Cluster, _ func()) {
		digest := saysHeld(c, "digest")
		c.API.Remove("pods/shop/p5") // and one of those is repaired, and broken again
		for i := range 20 {
			c.Pass(10 * time.Second)
			orphan(c, 6+i)
		}
		orphan(c, 5)
		c.Pass(10 * time.Second)
		proceed(c, digest)
		c.Pass(10 * time.Minute)
		if old, all := leftOf(c, 5), leftOf(c, 26); old != 0 || all != 21 {
			c.Errorf("%d of the 5 that were read about are left, and %d of all, want 21: %s", old, all, saysHeld(c, "message"))
		}
		proceed(c, saysHeld(c, "digest"))
		c.Pass(10 * time.Minute)
		if left := leftOf(c, 26); left != 0 || c.API.Get(heldMaps) != nil {
			c.Errorf("%d are left; %v", left, c.API.Get(heldMaps))
		}
	})
}

// TestADecisionOfBeforeDoesNotCount: neither after a restart, nor in a cluster that was restored
// while Weir ran: it may have been the mistake for which it was restored. The digest is another
// one, so a person can decide again.
func TestADecisionOfBeforeDoesNotCount(t *testing.T) {
	started := func(c *clustertest.Cluster, stop, restore func()) { stop(); restore(); c.Start() }
	restored := func(c *clustertest.Cluster, _, restore func()) { c.API.Down(); restore(); c.API.Up() }
	for name, again := range map[string]struct {
		decision string
		again    func(c *clustertest.Cluster, stop, restore func())
	}{
		"weir is started again":               {"Proceed", started},
		"the cluster is restored":             {"Proceed", restored},
		"discarded, weir is started again":    {"Discard", started},
		"discarded, and the cluster restored": {"Discard", restored},
	} {
		t.Run(name, func(t *testing.T) {
			held(t, 6, func(c *clustertest.Cluster, stop func()) {
				refusePods(c) // nothing has come through when the backup is made
				digest := saysHeld(c, "digest")
				decide(c, again.decision, digest)
				restore := c.API.Snapshot()
				c.Pass(time.Minute)
				c.Reply(nil)
				again.again(c, stop, func() { restore(0) })
				c.Pass(10 * time.Minute)
				if left := leftOf(c, 6); left != 6 || saysHeld(c, "digest") == digest || !strings.Contains(saysHeld(c, "message"), "what is held has another") {
					c.Errorf("%d of 6 are left: %v", left, c.API.Get(heldMaps)["status"])
				}
				proceed(c, saysHeld(c, "digest"))
				c.Pass(time.Minute)
				if left := leftOf(c, 6); left != 0 || c.API.Get(heldMaps) != nil {
					c.Errorf("%d are left; %v", left, c.API.Get(heldMaps))
				}
			})
		})
	}
}

// TestWhatABackupHasHeldIsHeld: the hold had ended, since most was repaired. In the backup it is
// held, fewer than the limit by then, and a person who looks there sees it: it waits for a
// decision, as if Weir had been started in that cluster.
func TestWhatABackupHasHeldIsHeld(t *testing.T) {
	held(t, 6, func(c *clustertest.Cluster, _ func()) {
		for i := 2; i < 6; i++ {
			c.API.Remove(fmt.Sprint("pods/shop/p", i))
		}
		c.Pass(30 * time.Second)
		restore := c.API.Snapshot()
		c.API.Remove("pods/shop/p0")
		c.API.Remove("pods/shop/p1")
		c.Pass(time.Minute)
		if c.API.Get(heldMaps) != nil {
			c.Fatalf("it is held still: %v", c.API.Get(heldMaps)["status"])
		}
		c.API.Down()
		restore(0)
		c.API.Up()
		c.Pass(10 * time.Minute)
		if left := leftOf(c, 2); left != 2 || saysHeld(c, "held") != "2" {
			c.Errorf("%d of 2 are left: %v", left, c.API.Get(heldMaps)["status"])
		}
		proceed(c, saysHeld(c, "digest"))
		c.Pass(time.Minute)
		if left := leftOf(c, 2); left != 0 || c.API.Get(heldMaps) != nil {
			c.Errorf("%d are left after a decision; %v", left, c.API.Get(heldMaps))
		}
	})
}

// TestADecisionThatARestoreTookBackIsNotTold: the backup is from before the decision, so there is
// none any more to tell about.
func TestADecisionThatARestoreTookBackIsNotTold(t *testing.T) {
	held(t, 6, func(c *clustertest.Cluster, _ func()) {
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if r.Method == http.MethodDelete {
				return apitest.Refuse(500, "InternalError", "not now")
			}
			return nil
		})
		restore := c.API.Snapshot()
		proceed(c, saysHeld(c, "digest"))
		c.Pass(time.Minute)
		c.API.Down()
		restore(0)
		c.API.Up()
		c.Pass(10 * time.Minute)
		if left := leftOf(c, 6); left != 6 || strings.Contains(saysHeld(c, "message"), "decided") {
			c.Errorf("%d of 6 are left: %s", left, saysHeld(c, "message"))
		}
		if told := c.Reported(" Decision: "); len(told) != 1 || !strings.Contains(told[0], ": 6 objects are deleted") {
			c.Errorf("Events: %q", told)
		}
	})
}

// TestWhatIsHeldIsNotToldAcrossARestore: Weir looks at what is held while the cluster is restored,
// and the API server answers only afterwards. A person who decides at once about what is told then
// decides about the restored cluster, so the decision counts.
func TestWhatIsHeldIsNotToldAcrossARestore(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Options.Brake = brake.Limits{Most: 2, Objects: 2, Share: 1}
		for i := range 6 {
			orphan(c, i)
		}
		restore := c.API.Snapshot() // nothing is held in it
		c.Start()
		c.Pass(time.Minute)
		asked, answer := make(chan struct{}), make(chan struct{})
		var once sync.Once
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if r.Method == http.MethodGet && strings.HasSuffix(r.Path, "/heldcollections") {
				once.Do(func() { close(asked); <-answer })
			}
			return nil
		})
		<-asked
		c.API.Down()
		restore(0)
		c.API.Up()
		c.Pass(time.Second) // and the next look is a second later
		close(answer)
		for end := time.Now().Add(time.Minute); saysHeld(c, "held") != "6"; c.Pass(10 * time.Millisecond) {
			if time.Now().After(end) {
				c.Fatalf("what is held is not told: %v", c.API.Get(heldMaps))
			}
		}
		proceed(c, saysHeld(c, "digest"))
		c.Pass(time.Minute)
		if left := leftOf(c, 6); left != 0 {
			c.Errorf("%d of 6 are left: %s", left, saysHeld(c, "message"))
		}
	})
}

// TestNoWorkWaitsForHeldCollectionsWhereNothingIsHeld: without limits an API server that does not
// list them holds up no work.
func TestNoWorkWaitsForHeldCollectionsWhereNothingIsHeld(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if strings.Contains(r.Path, "/heldcollections") {
				return apitest.Refuse(500, "InternalError", "not now")
			}
			return nil
		})
		c.Obey()
		orphan(c, 0)
		c.Start()
		c.Pass(time.Minute)
		c.MustBeGone("pods/shop/p0")
	})
}
