package webhook

import (
	"context"
	"errors"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/finalizers"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// Brake returns why another garbage collector must not delete an object now; "" if it may. It must
// bound its time.
type Brake func(ctx context.Context, uid types.UID) string

// brake answers the deletes of another garbage collector. It refuses only what is past a limit, or
// not known yet, and without a Retry-After: client-go would have a worker of the collector wait for
// that, which then collects nothing. The collector requeues the object by itself.
func brake(holds Brake) reviewer {
	return func(r *http.Request, q policies.Question) answer {
		uid := finalizers.MetaOf(q.OldObject).UID
		if q.Operation != policies.Delete || q.Subresource != "" || q.DryRun || uid == "" || isCollectorCanary(&q) {
			return allowed(policies.Decision{Allowed: true})
		}
		if holds == nil {
			return answer{err: errNoBrake}
		}
		if why := holds(r.Context(), uid); why != "" {
			return refused(policies.Decision{
				Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests, Message: why,
			}, 0)
		}
		return allowed(policies.Decision{Allowed: true})
	}
}

// errNoBrake is no refusal: the failurePolicy lets the delete pass. It is logged and counted, so
// that a missing brake is noticed.
var errNoBrake = errors.New("the API server asks about the garbage collector's deletes, to have them held above a " +
	"limit " +
	"(--brake-users of weir controller), but this process has no --brake-users: " +
	"give weir webhook the same --brake-users and --brake-most")

// isCollectorCanary reports whether a request is about the ConfigMap by whose end Weir measures how
// soon the other collector works.
func isCollectorCanary(q *policies.Question) bool {
	return q.Resource.Group == "" && q.Resource.Resource == "configmaps" && q.Name == v1beta1.CollectorCanary
}
