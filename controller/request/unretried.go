package request

import "net/http"

// Unretried returns a transport that removes Retry-After from answers. It is for clients that
// cannot be told not to retry, as client-go's do after that header: they would hold their place
// while they wait, and hide the 429 from the Limiter.
func Unretried(rt http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := rt.RoundTrip(r)
		if err == nil {
			resp.Header.Del("Retry-After")
		}
		return resp, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
