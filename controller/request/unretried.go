package request

import "net/http"

// Unretried is a transport for clients that cannot be told not to send a request again by
// themselves, as those of client-go do after an answer with Retry-After: they would keep their
// place while they wait, and hide the 429 from the Limiter.
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
