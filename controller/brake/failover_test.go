package brake_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/controller/brake"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
)

// TestWhoLeadsNextHoldsTheSame: and since the same moment. A decision by the digest that was there
// counts, as long as nothing else is held. If something is, it counts for what it was written of
// where the new leader has written it, too, before it found the rest, and for nothing else.
func TestWhoLeadsNextHoldsTheSame(t *testing.T) {
	for _, more := range []bool{false, true} {
		t.Run(fmt.Sprintf("more is held by then: %t", more), func(t *testing.T) {
			held(t, 6, func(c *clustertest.Cluster, stop func()) {
				next := c.Follow()
				digest, since := saysHeld(c, "digest"), saysHeld(c, "since")
				c.Pass(time.Minute)
				stop()
				if more {
					orphan(c, 6)
				}
				next()
				c.Pass(time.Minute)
				if all := leftOf(c, 7); more && all != 7 || saysHeld(c, "since") != since || (saysHeld(c, "digest") == digest) == more {
					c.Fatalf("%d are left, and it was held since %s: %v", all, since, c.API.Get(heldMaps)["status"])
				}
				proceed(c, digest)
				c.Pass(time.Minute)
				rest := c.API.Get("pods/shop/p6") != nil
				if left := leftOf(c, 7); more && (!rest || left != 7 && left != 1) || !more && left != 0 {
					c.Errorf("%d are left: %s", left, saysHeld(c, "message"))
				}
			})
		})
	}
}

// TestWhoLeadsNextAsksAgain: the one before was ended when half of the objects had gone. Its
// successor does not carry on with a decision that it has not told a digest for, and what is left
// is held until a person decides again.
func TestWhoLeadsNextAsksAgain(t *testing.T) {
	held(t, 6, func(c *clustertest.Cluster, stop func()) {
		next := c.Follow()
		var deletes atomic.Int32 // requests come side by side
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if r.Method != http.MethodDelete || !strings.Contains(r.Path, "/pods/") {
				return nil
			}
			if deletes.Add(1) > 3 {
				return apitest.Refuse(500, "InternalError", "not now")
			}
			return nil
		})
		proceed(c, saysHeld(c, "digest"))
		c.Pass(10 * time.Second)
		stop()
		c.Reply(nil)
		next()
		c.Pass(10 * time.Minute)
		if left := leftOf(c, 6); left != 3 || saysHeld(c, "held") != "3" || !strings.Contains(saysHeld(c, "message"), "because Weir was restarted") {
			c.Errorf("%d of 6 are left: %v", left, c.API.Get(heldMaps)["status"])
		}
		proceed(c, saysHeld(c, "digest"))
		c.Pass(time.Minute)
		if left := leftOf(c, 6); left != 0 {
			c.Errorf("%d are left: %s", left, saysHeld(c, "message"))
		}
	})
}

// TestNothingIsForgottenWhileItCannotBeWritten: the API server refuses HeldCollections, in one way
// or another, while the limit is exceeded and a person looks for what is held. Nothing goes; it is
// written when that has ended.
func TestNothingIsForgottenWhileItCannotBeWritten(t *testing.T) {
	for _, refused := range []string{http.MethodGet, http.MethodPost, http.MethodPatch} {
		t.Run(refused, func(t *testing.T) {
			clustertest.Run(t, func(c *clustertest.Cluster) {
				c.Options.Brake = brake.Limits{Most: 2, Objects: 2, Share: 1}
				c.Start()
				c.Reply(func(r apitest.Request) *apitest.Reply {
					if strings.Contains(r.Path, "heldcollections") && r.Method == refused {
						return apitest.Refuse(403, "Forbidden", "not for Weir")
					}
					return nil
				})
				for i := range 6 {
					orphan(c, i)
				}
				c.Pass(10 * time.Minute)
				if left := leftOf(c, 6); left != 6 || saysHeld(c, "held") != "" || len(c.Reported("CollectionHeld")) > 0 {
					c.Errorf("%d of 6 are left: %v, %q", left, c.API.Get(heldMaps), c.Reported("CollectionHeld"))
				}
				c.Reply(nil)
				c.Pass(10 * time.Second)
				if saysHeld(c, "held") != "6" || len(c.Reported("CollectionHeld")) != 1 {
					c.Errorf("%v, %q", c.API.Get(heldMaps), c.Reported("CollectionHeld"))
				}
			})
		})
	}
}

// undefined is the code of a 404 where there is no definition of HeldCollections.
const undefined = 1

// TestNothingInferredGoesBeforeWhatWasHeldIsRead: unless there is no definition of HeldCollections:
// then none were written.
func TestNothingInferredGoesBeforeWhatWasHeldIsRead(t *testing.T) {
	for code, waits := range map[int]bool{403: true, 404: true, undefined: false, 429: true, 500: true} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			held(t, 2+1, func(c *clustertest.Cluster, stop func()) {
				stop()
				c.API.Remove("pods/shop/p2") // by what is left the limit is not exceeded
				c.Reply(func(r apitest.Request) *apitest.Reply {
					switch {
					case r.Method != http.MethodGet:
					case strings.HasSuffix(r.Path, "/customresourcedefinitions/heldcollections.weir.dev"):
						if code == undefined {
							return apitest.Refuse(404, "", "no such definition")
						}
						return &apitest.Reply{Code: 200, Body: map[string]any{"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1"}}
					case strings.HasSuffix(r.Path, "/heldcollections"):
						if code == undefined {
							return apitest.Refuse(404, "", "not known")
						}
						return apitest.Refuse(code, "", "not now")
					}
					return nil
				})
				c.Start()
				c.Pass(10 * time.Minute)
				if left := leftOf(c, 2); waits != (left == 2) {
					c.Errorf("it waits: %t; %d of 2 are left", waits, left)
				}
				c.Reply(nil)
				c.Pass(30 * time.Second)
				if left := leftOf(c, 2); waits && (left != 2 || saysHeld(c, "held") != "2") {
					c.Errorf("%d of 2 are left: %v", left, c.API.Get(heldMaps))
				}
			})
		})
	}
}
