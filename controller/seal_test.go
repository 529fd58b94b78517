package controller

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1alpha1"
)

// wax seals with nothing but a word; everybody in a town has the same, or none yet.
type wax struct{ missing atomic.Bool }

func (w *wax) Seal(text string) (string, bool) { return "weir: " + text, !w.missing.Load() }

func (w *wax) Sealed(text, seal string) bool { return seal == "weir: "+text && !w.missing.Load() }

// write has somebody write a wave into a namespace.
func (c *town) write(name, wave, since, seal string) {
	c.Helper()
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		v1alpha1.DrainAnnotation: wave, v1alpha1.DrainSinceAnnotation: since, v1alpha1.DrainSealAnnotation: seal,
	}}})
	if err != nil {
		c.Fatal(err)
	}
	c.annotate(name, string(body))
}

// Whoever may edit a namespace does not decide which of its content goes, nor how long a wave has been under way.
func TestWaveThatSomebodyElseWroteCountsForNothing(t *testing.T) {
	for name, forge := range map[string]func(c *town, uid string){
		"a later wave": func(c *town, _ string) { c.write("shop", "rest", c.now().UTC().Format(time.RFC3339Nano), "") },
		"a time out":   func(c *town, _ string) { c.write("shop", "configs", c.now().UTC().Format(time.RFC3339Nano), "") },
		"the seal of another namespace": func(c *town, _ string) {
			since := c.now().UTC().Format(time.RFC3339Nano)
			c.write("shop", "rest", since, "weir: "+policies.Sealed("other", "rest", since))
		},
		"the seal of another wave": func(c *town, uid string) {
			since := c.now().UTC().Format(time.RFC3339Nano)
			c.write("shop", "rest", since, "weir: "+policies.Sealed(uid, "configs", since))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inTown(t, func(c *town) {
				c.options.Seals = &wax{}
				c.heldFirst()
				stop := c.start()
				c.end("shop")
				c.pass(20 * time.Second)
				stop()
				forge(c, "first")
				c.start() // which remembers nothing
				c.pass(30 * time.Second)
				c.mustBeThere("pods/shop/p")
				var ns corev1.Namespace
				if !c.namespace("shop", &ns) || ns.Annotations[v1alpha1.DrainAnnotation] != "configs" {
					c.Errorf("the namespace says %v", ns.Annotations)
				}
				if a := ns.Annotations; !(&wax{}).Sealed(policies.Sealed("first", "configs", a[v1alpha1.DrainSinceAnnotation]), a[v1alpha1.DrainSealAnnotation]) {
					c.Errorf("the seal is %q", a[v1alpha1.DrainSealAnnotation])
				}
				c.pass(time.Minute)
				c.mustBeGone("pods/shop/p")
			})
		})
	}
}

// What Weir wrote itself it goes on with, once it has the key to tell.
func TestSealedWaveGoesOnAfterARestart(t *testing.T) {
	inTowns(t, func(c *town) {
		key := &wax{}
		c.options.Seals = key
		c.heldFirst()
		stop := c.start()
		c.end("shop")
		c.pass(30 * time.Second)
		stop()
		key.missing.Store(true)
		c.start()
		c.pass(10 * time.Second)
		key.missing.Store(false)
		c.pass(8 * time.Second)
		c.mustBeThere("pods/shop/p")
		c.pass(40 * time.Second) // less than the wave has in all
		c.mustBeGone("pods/shop/p")
	})
}

// A wave that is said to begin in a year would have all the time till then.
func TestTimeToComeHoldsNoWave(t *testing.T) {
	inTowns(t, func(c *town) {
		c.heldFirst()
		stop := c.start()
		c.end("shop")
		c.pass(20 * time.Second)
		stop()
		c.write("shop", "configs", c.now().Add(365*24*time.Hour).UTC().Format(time.RFC3339Nano), "")
		c.start()
		c.pass(70 * time.Second)
		c.mustBeGone("pods/shop/p")
	})
}
