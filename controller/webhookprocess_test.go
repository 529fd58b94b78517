package controller_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
	"github.com/weir-dev/weir/policies"
)

// TestAProcessThatKnowsKindsOnlyKnowsAllOnceThatIsAskedFor, and says of objects until then that
// they are not known.
func TestAProcessThatKnowsKindsOnlyKnowsAllOnceThatIsAskedFor(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Serve("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", false, clustertest.AllVerbs)
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "owner")
		ownedPod(c, "p0", "owner")
		f, err := controller.NewFollowing(controller.Options{Config: c.API.Config()})
		if err != nil {
			t.Fatal(err)
		}
		if f.KindsReady() == nil || f.Ready() == nil {
			t.Error("something is known before anything was asked")
		}
		all, facts := make(chan struct{}), f.Facts()
		ctx, cancel := context.WithCancel(c.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := f.FollowKinds(ctx, all); err != nil {
				t.Error(err)
			}
		})
		c.Pass(time.Hour)
		if _, known := facts.Dependents(policies.Search{UID: "uid-owner"}, 100); known || f.KindsReady() != nil || f.Ready() == nil || !facts.Kind(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}).Served {
			t.Errorf("dependents are known: %t; kinds: %v, objects: %v", known, f.KindsReady(), f.Ready())
		}
		close(all)
		c.Pass(10 * time.Second)
		if also, known := facts.Dependents(policies.Search{UID: "uid-owner"}, 100); !known || also.Total() != 1 || f.Ready() != nil {
			t.Errorf("dependents are known: %t, %d; objects: %v", known, also.Total(), f.Ready())
		}
		cancel()
		wg.Wait()
	})
}

// TestWhatCannotWorkIsRefusedAtOnce: before anything is sent, and a registry that another has is a
// mistake of the program.
func TestWhatCannotWorkIsRefusedAtOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	good := &rest.Config{Host: "http://api.test"}
	if _, err := controller.NewFollowing(controller.Options{Config: good, Registry: registry}); err != nil {
		t.Fatal(err)
	}
	noFile := &rest.Config{Host: "https://api.test", TLSClientConfig: rest.TLSClientConfig{CAFile: "there-is-none.pem"}}
	for name, c := range map[string]struct {
		o    controller.Options
		want string
	}{
		"a file that is not there": {controller.Options{Config: noFile}, "follow a cluster: "},
		"a host that is none":      {controller.Options{Config: &rest.Config{Host: "http://a b:c"}}, "host"},
	} {
		for _, shadow := range []bool{false, true} {
			c.o.Shadow = shadow
			if ctrl, err := controller.New(c.o); ctrl != nil || err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s, in shadow mode %t: %v", name, shadow, err)
			}
		}
	}
	func() {
		defer func() {
			if text := fmt.Sprint(recover()); !strings.Contains(text, "duplicate") {
				t.Errorf("a registry that another has: %s", text)
			}
		}()
		if _, err := controller.NewFollowing(controller.Options{Config: good, Registry: registry}); err != nil {
			panic(err)
		}
	}()
}
