package shadow

import (
	"bytes"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Handler serves the present report as JSON. It does not authenticate.
func (s *Shadow) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "the report can only be read: use GET", http.StatusMethodNotAllowed)
			return
		}
		found := s.now()
		var data bytes.Buffer
		_ = found.Write(&data) // a buffer takes everything
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		_, _ = data.WriteTo(w) // the client is gone
	})
}

// Local lets requests through that name an address or localhost, and no page in a browser: neither
// one of another origin, nor one whose name was made to resolve to this machine (DNS rebinding).
// Handlers without authentication need it.
func Local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
		switch {
		case !isAddress(r.Host):
			http.Error(w, "ask for it by an address, such as 127.0.0.1, or as localhost: any other name can be made to mean "+
				"this machine", http.StatusMisdirectedRequest)
		case origin != "" && origin != "http://"+r.Host, site != "" && site != "same-origin" && site != "none":
			http.Error(w, "a page from elsewhere may not ask: open the address itself", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isAddress reports whether a Host, with or without a port, is an address or localhost.
func isAddress(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || host == "localhost"
}
