package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-chi/chi/v5"
)

// The API server says in ?timeout= how long it waits. Otherwise its default holds (RB 6.18).
const (
	defaultTimeout = 10 * time.Second
	mostTimeout    = 30 * time.Second
)

// admitted passes on what may be judged. It answers 404 to clients that do not know the token,
// which the API server has from the webhook configurations: nothing of such a request is read, and
// the answer does not tell which webhooks there are. It answers 503 while the policies are not
// known yet. A review is bounded by the time that the API server waits, less a tenth for the way of
// the answer.
func admitted(next http.Handler, takes func(token string) bool, ready func() error, m *metrics) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !takes(chi.URLParam(r, "token")) {
			noWebhook(m)(w, r)
			return
		}
		recognize(r)
		timeout := defaultTimeout
		if text := r.URL.Query().Get("timeout"); text != "" {
			t, err := time.ParseDuration(text)
			if err != nil || t <= 0 {
				http.Error(w, fmt.Sprintf("timeout is %q, want a duration such as 10s", text), http.StatusBadRequest)
				return
			}
			timeout = min(t, mostTimeout)
		}
		if err := ready(); err != nil {
			http.Error(w, "weir is starting: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), timeout-timeout/10)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func noWebhook(m *metrics) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		m.requests.WithLabelValues("", "", "unknown").Inc()
		hangUp(w)
		const text = "there is no webhook at this path: those that there are, are in the webhook configurations"
		http.Error(w, text, http.StatusNotFound)
	}
}

// recovered answers for a review that panicked, so that one bad request is one bad answer.
func recovered(log *sayer, m *metrics) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				p := recover()
				if p == nil {
					return
				}
				if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
					panic(p) // how a handler ends a connection on purpose
				}
				m.panics.Inc()
				if left, ok := log.next(); ok {
					log.log.Error(fmt.Errorf("%v", p), "a review panicked", "stack", string(debug.Stack()), "leftOut", left)
				}
				http.Error(w, "weir failed while it judged this request; its log says where", http.StatusInternalServerError)
			}()
			next.ServeHTTP(w, r)
		})
	}
}
