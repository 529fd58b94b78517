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

// Brake says why an object must not be deleted now by another garbage collector; "" if it may be.
// It must bound how long it takes.
type Brake func(ctx context.Context, uid types.UID) string

// brake answers for what another garbage collector deletes. Nothing is refused but what is past a
// limit, or not known yet: without a Retry-After, because client-go would have a worker of the
// collector wait for it, which then collects nothing. The collector puts the object back into its
// queue by itself.
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
			return refused(policies.Decision{Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests, Message: why}, 0)
		}
		return allowed(policies.Decision{Allowed: true})
	}
}

// errNoBrake is no refusal: the failurePolicy has the delete go on. It is logged and counted, so
// that a brake that holds nothing says so.
var errNoBrake = errors.New("the API server asks about the garbage collector's deletes, to have them held above a limit (--brake-users of weir controller), but this process has no --brake-users: give weir webhook the same --brake-users and --brake-most")

// isCollectorCanary: by the end of that ConfigMap Weir measures how soon the other collector works.
func isCollectorCanary(q *policies.Question) bool {
	return q.Resource.Group == "" && q.Resource.Resource == "configmaps" && q.Name == v1beta1.CollectorCanary
}
