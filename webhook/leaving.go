package webhook

import "net/http"

// Leaving has clients take their connections elsewhere once leaving says so: each answer is then
// the last on its connection. The API server speaks HTTP/1.1 with webhooks and keeps connections;
// one that is closed under a request that was a moment ago sent is a failed call, which under
// failurePolicy Fail refuses what a user asked for.
func Leaving(next http.Handler, leaving func() bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if leaving() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
