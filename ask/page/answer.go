package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/weir-dev/weir/ask/snapshot"
)

// The bounds of what is sent at once.
const (
	mostFound  = 50
	mostLines  = 500
	mostListed = 200 // objects of a group
	mostPlans  = 4   // kept, so that their lines can be asked for
)

// refusal is an error with its HTTP status.
type refusal struct {
	status int
	error
}

func bad(format string, args ...any) error {
	return refusal{http.StatusBadRequest, fmt.Errorf(format, args...)}
}

// errUnchanged says that the client has the current answer.
var errUnchanged = errors.New("unchanged")

// settled answers once every kind has been listed that can be. It waits for slow lists only within
// listTime of the start.
func (p *Page) settled(ask func(context.Context, url.Values) (any, error)) http.HandlerFunc {
	return answer(func(ctx context.Context, q url.Values) (any, error) {
		listing, stop := context.WithDeadline(ctx, p.begun.Add(listTime))
		defer stop()
		p.Follower.Listed(listing)
		return ask(ctx, q)
	})
}

// answer sends the result of a question as JSON.
func answer(ask func(context.Context, url.Values) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerTime)
		defer cancel()
		said, err := ask(ctx, r.URL.Query())
		status := http.StatusOK
		var refused refusal
		switch {
		case errors.Is(err, errUnchanged):
			w.WriteHeader(http.StatusNoContent)
			return
		case errors.As(err, &refused):
			status = refused.status
		case errors.Is(err, snapshot.ErrGone):
			status = http.StatusNotFound
		case errors.Is(err, snapshot.ErrNotServed):
			status = http.StatusBadRequest
		case err != nil:
			status = http.StatusBadGateway // the API server failed
		}
		if err != nil {
			said = map[string]string{"error": err.Error()}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(said) // an error means that the client went away
	}
}

// enter waits for a place among the questions that are answered at the same time. leave frees it.
func (p *Page) enter(ctx context.Context) (leave func(), err error) {
	select {
	case p.asking <- struct{}{}:
		return func() { <-p.asking }, nil
	case <-ctx.Done():
		return nil, ctx.Err() // the client went away
	}
}

// fresh returns the version of a namespace, or errUnchanged if the client has it.
func (p *Page) fresh(q url.Values, namespace string) (version int64, err error) {
	version = p.Follower.Version(namespace)
	if q.Get("have") == strconv.FormatInt(version, 10) {
		return version, errUnchanged
	}
	return version, nil
}

func (p *Page) state(context.Context, url.Values) (any, error) {
	return struct {
		Cluster string `json:"cluster"`
		snapshot.State
	}{p.Cluster, p.Follower.State()}, nil
}

func (p *Page) search(_ context.Context, q url.Values) (any, error) {
	text := q.Get("q")
	if len(text) < 1 || len(text) > 253 {
		return nil, bad("q: must be a part of a name")
	}
	found, total := p.Follower.Search(text, mostFound)
	return map[string]any{"items": found, "total": total}, nil
}
