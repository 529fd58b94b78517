package namespaces_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
)

// TestWebhookThatWasTakenAwayIsWaitedForHoweverOftenOthersAreRead: a create may still be with it
// for as long as a request takes. Every namespace that is deleted has the webhooks read, where they
// are not watched.
func TestWebhookThatWasTakenAwayIsWaitedForHoweverOftenOthersAreRead(t *testing.T) {
	for name, after := range map[string]struct {
		pause time.Duration // until it was taken away
		waits bool
	}{
		"a moment ago":         {time.Second, true},
		"half a minute ago":    {25 * time.Second, true},
		"longer than it takes": {50 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			clustertest.Run(t, func(c *clustertest.Cluster) {
				for i := range 5 {
					c.Found(fmt.Sprint("shop-", i), "")
				}
				there := []admissionregistrationv1.ValidatingWebhook{slow()}
				c.Reply(func(r apitest.Request) *apitest.Reply {
					if !strings.HasSuffix(r.Path, "/validatingwebhookconfigurations") || strings.Contains(r.Query, "watch=") {
						return nil
					}
					return &apitest.Reply{Code: 200, Body: admissionregistrationv1.ValidatingWebhookConfigurationList{
						TypeMeta: metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfigurationList"},
						Items:    []admissionregistrationv1.ValidatingWebhookConfiguration{{ObjectMeta: metav1.ObjectMeta{Name: "others"}, Webhooks: there}}}}
				})
				c.Start()
				c.End("shop-0")
				c.Pass(6 * time.Second)
				c.MustBeGone("namespaces/shop-0")
				there = nil
				for i := 1; i < 4; i++ { // each has them read
					c.End(fmt.Sprint("shop-", i))
					c.Pass(after.pause / 3)
				}
				c.End("shop-4")
				c.Pass(4 * time.Second)
				if waits := c.API.Get("namespaces/shop-4") != nil; waits != after.waits {
					t.Errorf("it waits: %t, want %t", waits, after.waits)
				}
				c.Pass(2 * time.Second)
				c.MustBeGone("namespaces/shop-4")
			})
		})
	}
}
