package webhook

import (
	"net/http"

	"github.com/weir-dev/weir/policies"
)

// check judges policies that are written, by the request alone.
func check(_ *http.Request, q policies.Question) answer {
	if q.Operation == policies.Delete || q.Subresource != "" {
		return allowed(policies.Decision{Allowed: true})
	}
	d, err := policies.Check(&q)
	switch {
	case err != nil:
		return answer{err: err}
	case !d.Allowed:
		return refused(d, 0)
	}
	return allowed(d)
}
