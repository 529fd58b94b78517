package enforce_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
)

// TestDependentThatCannotBeReleasedHoldsItsOwner, whatever the API server says, and for as long:
// the owner must not go before, since the dependent would be collected then. Of what stays as it is
// until a person acts an Event on the dependent tells, once.
func TestDependentThatCannotBeReleasedHoldsItsOwner(t *testing.T) {
	denied := func(code int, reason string) *apitest.Reply {
		return apitest.Refuse(code, reason, `admission webhook "w.example.com" denied the request: owners stay`)
	}
	for name, x := range map[string]struct {
		answer *apitest.Reply
		told   string // an Event on the pod; empty: none
	}{
		"by RBAC":                              {apitest.Refuse(403, "Forbidden", "pods p is forbidden"), "is forbidden"},
		"by a webhook":                         {denied(403, "Forbidden"), "owners stay"},
		"by a webhook, as if it had changed":   {denied(409, "Conflict"), "owners stay"},
		"by a webhook, as if it was not there": {denied(404, "NotFound"), "owners stay"},
		"it has changed, it says":              {apitest.Refuse(409, "Conflict", "the object has been modified"), ""},
		"another server answers":               {apitest.Refuse(404, "NotFound", "the server could not find the requested resource"), ""},
		"too many requests": {&apitest.Reply{Code: 429, Body: metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Code: 429, Reason: metav1.StatusReasonTooManyRequests, Message: "later", Details: &metav1.StatusDetails{RetryAfterSeconds: 1}}}, ""},
		"an error": {apitest.Refuse(500, "InternalError", "etcd is away"), "etcd is away"},
	} {
		for _, companion := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, companion=%t", name, companion), func(t *testing.T) {
				clustertest.Run(t, func(c *clustertest.Cluster) {
					c.API.Put("deletionpolicies", policy("p", "propagation: {default: Background, dependents: [{apiGroups: [''], resources: [pods], action: Orphan}]}"))
					c.API.Put("configmaps", whole("a"))
					c.API.Put("pods", owned("Pod", "p", "a"))
					c.API.Put("pods", owned("Pod", "q", "a"))
					c.Obey()
					c.Options.Companion = companion
					c.Start()
					c.Reply(func(r apitest.Request) *apitest.Reply {
						if r.Method == http.MethodPatch && strings.HasSuffix(r.Path, "/pods/p") {
							return x.answer
						}
						return nil
					})
					changes(c)
					c.API.Put("configmaps", heldMap("a", ""))
					c.Pass(3 * time.Minute)
					c.MustBeThere("configmaps/shop/a", "pods/shop/p", "pods/shop/q")
					tries := 0
					for _, s := range changes(c) {
						if s == "PATCH p owners" {
							tries++
						}
					}
					if tries < 3 || tries > 200 { // an overloaded server said itself how soon to come again
						t.Errorf("tried %d times in three minutes", tries)
					}
					if left := ownersOf(c, "pods/shop/q"); len(left) > 0 {
						t.Error("one that is refused keeps another from being released")
					}
					if told := c.Reported("p CollectionRefused"); x.told == "" && len(told) > 0 || x.told != "" && (len(told) != 1 || !strings.Contains(told[0], x.told)) {
						t.Errorf("Events on the pod: %q, want %q", told, x.told)
					}
					c.Reply(nil)
					c.Pass(time.Minute)
					c.MustBeGone("configmaps/shop/a")
					c.MustBeThere("pods/shop/p", "pods/shop/q")
					if left := ownersOf(c, "pods/shop/p"); len(left) > 0 {
						t.Errorf("the pod still has owners %v", left)
					}
				})
			})
		}
	}
}
