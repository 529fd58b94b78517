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

// judge tells what an answer says about the state of the API that serves a kind, and after what
// time that asks to be asked again.
func judge(kind schema.GroupResource, err error) (v verdict, retryAfter time.Duration) {
	switch {
	case errors.Is(err, follow.ErrNoContact), errors.Is(err, follow.ErrRewound): // it was not sent
		return noVerdict, 0
	case RefusedByWebhook(err): // its word about one object
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

// isServers tells whether a 429 comes from the API server's own limits, which are for all kinds:
// those answer in plain text, where an API, and its storage, sends a Status. Behind a group that
// may be aggregated, another server may have said the same; then every kind finds out for itself.
// The headers of priority and fairness do not tell: the API server puts them on what it passes on,
// too.
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

// failure keeps what a broken connection says from being taken for our own end: whoever is asked
// may have cancelled something too.
func failure(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		return errors.New(err.Error())
	}
	return err
}
