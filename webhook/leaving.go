package webhook

import "net/http"

// Leaving closes each connection with its next answer once leaving returns true, so that clients
// connect elsewhere. The API server keeps HTTP/1.1 connections to webhooks. If one is closed under
// a request that was just sent, the call fails, and failurePolicy Fail refuses the user's request.
func Leaving(next http.Handler, leaving func() bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if leaving() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
