package namespaces_test

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/internal/testkit/clustertest"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// wax seals with nothing but a word; everybody in a town has the same, or none yet.
type wax struct{ missing atomic.Bool }

func (w *wax) Seal(text string) (string, bool) { return "weir: " + text, !w.missing.Load() }

func (w *wax) Sealed(text, seal string) bool { return seal == "weir: "+text && !w.missing.Load() }

// write has a client write a wave into a namespace.
func write(c *clustertest.Cluster, name, wave, since, seal string) {
	c.Helper()
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		v1beta1.DrainAnnotation: wave, v1beta1.DrainSinceAnnotation: since, v1beta1.DrainSealAnnotation: seal,
	}}})
	if err != nil {
		c.Fatal(err)
	}
	c.Annotate(name, string(body))
}

// Whoever may edit a namespace does not decide which of its content goes, nor how long a wave has
// been under way.
func TestWaveThatAnotherWroteCountsForNothing(t *testing.T) {
	for name, forge := range map[string]func(c *clustertest.Cluster, uid string){
		"a later wave": func(c *clustertest.Cluster, _ string) {
			write(c, "shop", "rest", c.Now().UTC().Format(time.RFC3339Nano), "")
		},
		"a time out": func(c *clustertest.Cluster, _ string) {
			write(c, "shop", "configs", c.Now().UTC().Format(time.RFC3339Nano), "")
		},
		"the seal of another namespace": func(c *clustertest.Cluster, _ string) {
			since := c.Now().UTC().Format(time.RFC3339Nano)
			write(c, "shop", "rest", since, "weir: "+policies.Sealed("other", "rest", since))
		},
		"the seal of another wave": func(c *clustertest.Cluster, uid string) {
			since := c.Now().UTC().Format(time.RFC3339Nano)
			write(c, "shop", "rest", since, "weir: "+policies.Sealed(uid, "configs", since))
		},
	} {
		t.Run(name, func(t *testing.T) {
			clustertest.Run(t, func(c *clustertest.Cluster) {
				c.Options.Seals = &wax{}
				heldFirst(c)
				stop := c.Start()
				c.End("shop")
				c.Pass(20 * time.Second)
				stop()
				forge(c, "first")
				c.Start() // which remembers nothing
				c.Pass(30 * time.Second)
				c.MustBeThere("pods/shop/p")
				var ns corev1.Namespace
				if !c.Namespace("shop", &ns) || ns.Annotations[v1beta1.DrainAnnotation] != "configs" {
					c.Errorf("the namespace says %v", ns.Annotations)
				}
				if a := ns.Annotations; !(&wax{}).Sealed(policies.Sealed("first", "configs", a[v1beta1.DrainSinceAnnotation]), a[v1beta1.DrainSealAnnotation]) {
					c.Errorf("the seal is %q", a[v1beta1.DrainSealAnnotation])
				}
				c.Pass(time.Minute)
				c.MustBeGone("pods/shop/p")
			})
		})
	}
}

// What Weir wrote itself it goes on with, once it has the key to tell.
func TestSealedWaveGoesOnAfterARestart(t *testing.T) {
	inTowns(t, func(c *clustertest.Cluster) {
		key := &wax{}
		c.Options.Seals = key
		heldFirst(c)
		stop := c.Start()
		c.End("shop")
		c.Pass(30 * time.Second)
		stop()
		key.missing.Store(true)
		c.Start()
		c.Pass(10 * time.Second)
		key.missing.Store(false)
		c.Pass(8 * time.Second)
		c.MustBeThere("pods/shop/p")
		c.Pass(40 * time.Second) // less than the wave has in all
		c.MustBeGone("pods/shop/p")
	})
}

// A wave that is said to begin in a year would have all the time till then.
func TestTimeToComeHoldsNoWave(t *testing.T) {
	inTowns(t, func(c *clustertest.Cluster) {
		heldFirst(c)
		stop := c.Start()
		c.End("shop")
		c.Pass(20 * time.Second)
		stop()
		write(c, "shop", "configs", c.Now().Add(365*24*time.Hour).UTC().Format(time.RFC3339Nano), "")
		c.Start()
		c.Pass(70 * time.Second)
		c.MustBeGone("pods/shop/p")
	})
}
