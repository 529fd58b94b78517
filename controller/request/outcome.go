package request

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

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

// judge returns what an answer says about the API that serves a kind, and how long that asked to
// wait.
func judge(kind schema.GroupResource, err error) (v verdict, retryAfter time.Duration) {
	switch {
	case errors.Is(err, follow.ErrNoContact), errors.Is(err, follow.ErrRewound): // not sent
		return noVerdict, 0
	case RefusedByWebhook(err): // about one object, and not about the API
		return fine, 0
	case apierrors.IsTooManyRequests(err):
		seconds, _ := apierrors.SuggestsClientDelay(err)
		if isServers(kind, err) {
			return throttledByServer, time.Duration(seconds) * time.Second
		}
		return throttledByKind, time.Duration(seconds) * time.Second
	}
	switch OutcomeOf(err) {
	case Failed:
		return unanswered, 0
	case Cancelled:
		return noVerdict, 0
	}
	return fine, 0
}

// isServers reports whether a 429 comes from the API server's own limits, which are for all kinds.
// Those answer in plain text, where an API and its storage send a Status. For a group that may be
// aggregated another server may have answered so; then each kind finds out for itself. The headers
// of priority and fairness do not tell: the API server also adds them to answers that it passes on.
func isServers(kind schema.GroupResource, err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	builtIn := !strings.Contains(kind.Group, ".") || strings.HasSuffix(kind.Group, ".k8s.io")
	return builtIn && slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}

// failure hides a cancellation that does not come from ctx: another process may have cancelled
// something, which is not the end of this one.
func failure(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		return errors.New(err.Error())
	}
	return err
}
