package controller

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/weir-dev/weir/controller/enforce"
	"github.com/weir-dev/weir/controller/leases"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies/live"
)

// TestOnlyALeaderWithAWebhookWaitsToBeAsked: everybody else is ready as if there were no webhook,
// or a rollout would never end.
func TestOnlyALeaderWithAWebhookWaitsToBeAsked(t *testing.T) {
	target := &enforce.WebhookTarget{URL: "https://weir.test", CanaryNamespace: "weir-system"}
	for name, c := range map[string]struct {
		webhooks         *enforce.WebhookTarget
		shadow, policies bool
		lease            *leases.Lease
		began, leads     bool
		waits            bool
	}{
		"it follows":                       {webhooks: target, policies: true, lease: held(t, true)},
		"it may be the one to lead":        {webhooks: target, policies: true, lease: held(t, false), waits: true},
		"it is about to lead":              {webhooks: target, policies: true, waits: true},
		"it leads, and has not begun":      {webhooks: target, policies: true, began: true, waits: true},
		"it leads and works":               {webhooks: target, policies: true, began: true, leads: true, waits: true},
		"the webhook is somebody else's":   {policies: true, began: true, leads: true},
		"there are no policies to enforce": {began: true, leads: true},
		"it changes nothing":               {shadow: true, began: true, leads: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Config: &rest.Config{Host: "http://api.test"}, Webhooks: c.webhooks, Shadow: c.shadow, Lease: c.lease}
			if c.policies {
				var err error
				if o.Policies, err = live.New(live.Options{Config: apitest.New().Config()}); err != nil {
					t.Fatal(err)
				}
			}
			ctrl, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			ctrl.began.Store(c.began)
			ctrl.leads.Store(c.leads)
			if err := ctrl.Enforced(); (err != nil) != c.waits {
				t.Errorf("it waits for %v, want that it waits: %t", err, c.waits)
			}
		})
	}
}

// held is the Lease of another process after a standby has looked at it for a minute.
func held(t *testing.T, renewed bool) *leases.Lease {
	t.Helper()
	var v *leases.Lease
	synctest.Test(t, func(t *testing.T) {
		v = leases.New(&other{lives: renewed}, time.Second, logr.Discard())
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		_, _, _ = v.Get(ctx)
	})
	return v
}

// other is a Lease that a process holds, which may have ended.
type other struct {
	resourcelock.Interface
	lives    bool
	renewals byte
}

func (o *other) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if o.lives {
		o.renewals++
	}
	return &resourcelock.LeaderElectionRecord{HolderIdentity: "other", LeaseDurationSeconds: 15}, []byte{o.renewals}, nil
}

func (o *other) Identity() string { return "standby" }
func (o *other) Describe() string { return "weir-system/weir" }
