package request

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// Outcome is how a request ended, as far as the next step depends on it.
type Outcome string

// The outcomes.
const (
	OK        Outcome = "ok"
	Stale     Outcome = "stale"     // 409: the object has changed; or the decision was from another history
	Gone      Outcome = "gone"      // 404: the object is gone; the watch will say so
	Throttled Outcome = "throttled" // 429, or not sent because its kind fails: later
	Refused   Outcome = "refused"   // by RBAC, a webhook, or validation
	Failed    Outcome = "failed"    // the server, or the way to it, failed
	Cancelled Outcome = "cancelled" // this process is stopping
)

// Outcomes are all outcomes.
var Outcomes = [...]Outcome{OK, Stale, Gone, Throttled, Refused, Failed, Cancelled}

// errNoEffect: a patch was accepted and changed nothing, because something undoes it.
var errNoEffect = errors.New("the API server accepted the patch but nothing changed: a mutating webhook may be " +
	"undoing it")

// ErrOwnerChanged says that an object is not deleted because its owner does not wait for it any more.
var ErrOwnerChanged = errors.New("it does not wait for its dependents any more")

// OutcomeOf returns how a request with this error ended.
func OutcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return OK
	case errors.Is(err, context.Canceled):
		return Cancelled
	case errors.Is(err, errNoEffect):
		return Refused
	case errors.Is(err, follow.ErrRewound), errors.Is(err, ErrOwnerChanged):
		return Stale
	case apierrors.IsTooManyRequests(err), IsBusy(err):
		return Throttled
	case RefusedByWebhook(err):
		return Refused
	case apierrors.IsConflict(err):
		return Stale
	case apierrors.IsNotFound(err):
		return Gone
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsInvalid(err),
		apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err), apierrors.IsUnsupportedMediaType(err):
		return Refused
	}
	return Failed
}

// RefusedByWebhook reports whether an admission webhook refused a request. The webhook chooses the
// code, which says nothing about the object (RB 6.14, 3.18).
func RefusedByWebhook(err error) bool {
	return err != nil && strings.Contains(err.Error(), "admission webhook ") &&
		strings.Contains(err.Error(), " denied the request")
}

// OutcomeAbout is OutcomeOf a request about an object. If the object's namespace is gone the object
// stays, and no request about it is accepted before a namespace of that name exists again
// (kubernetes/kubernetes#49027).
func OutcomeAbout(ref graph.Ref, err error) Outcome {
	if InNoNamespace(ref, err) {
		return Refused
	}
	return OutcomeOf(err)
}

// InNoNamespace reports whether the API server answered that the object's namespace does not exist.
// No Event can be created there, either.
func InNoNamespace(ref graph.Ref, err error) bool {
	var status apierrors.APIStatus
	if ref.Namespace == "" || !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	d := status.Status().Details
	return d != nil && d.Group == "" && d.Kind == "namespaces"
}

// Protected reports whether Weir's own webhook refused the delete of an object because a policy
// protects it, and returns the policy's words.
func Protected(err error) (why string, yes bool) {
	var status apierrors.APIStatus
	if !RefusedByWebhook(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return "", false
	}
	for _, c := range status.Status().Details.Causes {
		if c.Type == v1beta1.CauseProtected {
			return "a policy protects it: " + c.Message, true
		}
	}
	return "", false
}

// NoSuchObject reports whether an API server that knows the kind said that it has no object of that
// kind and name. Any other 404 says less: a path that is not served because its CRD is gone, a
// namespace that does not exist, or a webhook that chose the code (RB 3.18).
func NoSuchObject(err error, kind schema.GroupResource, name string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || RefusedByWebhook(err) {
		return false
	}
	d := status.Status().Details
	if d == nil || d.Name != name || slices.ContainsFunc(d.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	}) {
		return false
	}
	said := schema.GroupResource{Group: d.Group, Resource: d.Kind}
	twin, has := kinds.Twins[kind]
	return said == kind || has && said == twin
}
