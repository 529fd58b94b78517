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
)

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
