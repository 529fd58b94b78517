package controller

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// outcome is how a request ended, as far as it matters for what comes next.
type outcome string

const (
	ok        outcome = "ok"
	stale     outcome = "stale"     // 409: the object has changed; or it was decided in another history
	gone      outcome = "gone"      // 404: the object is not there any more; the watch will say so
	throttled outcome = "throttled" // 429, or not even asked because of others of its kind: later
	refused   outcome = "refused"   // somebody said no: RBAC, a webhook, validation
	failed    outcome = "failed"    // the server, or the way there, is in trouble
	cancelled outcome = "cancelled" // we are stopping
)

// outcomes are all of them.
var outcomes = [...]outcome{ok, stale, gone, throttled, refused, failed, cancelled}

// errNoEffect is a patch that was accepted and changed nothing: something puts back what it takes out.
var errNoEffect = errors.New("the API server accepted the patch but nothing changed: a mutating webhook may be undoing it")

func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return ok
	case errors.Is(err, context.Canceled):
		return cancelled
	case errors.Is(err, errNoEffect):
		return refused
	case errors.Is(err, errRewound):
		return stale
	case apierrors.IsTooManyRequests(err), isBusy(err):
		return throttled
	case refusedByWebhook(err):
		return refused
	case apierrors.IsConflict(err):
		return stale
	case apierrors.IsNotFound(err):
		return gone
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsInvalid(err),
		apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err), apierrors.IsUnsupportedMediaType(err):
		return refused
	}
	return failed
}
