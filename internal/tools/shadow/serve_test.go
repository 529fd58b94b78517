package shadow

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

func TestTheReportIsServedAsItIsNow(t *testing.T) {
	listed := errors.New("listing")
	s := New(Options{Store: follow.NewStore(), Ready: func() error { return listed }, Registry: prometheus.NewRegistry()})
	get := func(method string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(method, report.Path, nil))
		return w
	}
	read := func() *report.Report {
		w := get(http.MethodGet)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "no-store" {
			t.Fatalf("%d %v", w.Code, w.Header())
		}
		r, err := report.Read(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := read(); r.Ready || len(r.Decisions) > 0 {
		t.Errorf("at first: %+v", r)
	}
	listed = nil
	s.ledger.Decided(start, "leaf", action(graph.Delete, "1"), view("1"), true)
	if r := read(); !r.Ready || r.Decisions["delete"]["open"] != 1 {
		t.Errorf("then: %+v", r)
	}
	if w := get(http.MethodHead); w.Code != http.StatusOK {
		t.Errorf("HEAD: %d", w.Code)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
		if w := get(method); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d %v", method, w.Code, w.Header())
		}
	}
}

// TestNoPageOfABrowserReadsTheReport: it is asked for at an address, and by nothing that came from
// elsewhere.
func TestNoPageOfABrowserReadsTheReport(t *testing.T) {
	for name, c := range map[string]struct {
		host, header, value string
		want                int
	}{
		"an address":                     {"127.0.0.1:8089", "", "", http.StatusOK},
		"one of IPv6":                    {"[::1]:8089", "", "", http.StatusOK},
		"without a port":                 {"[::1]", "", "", http.StatusOK},
		"localhost, forwarded elsewhere": {"localhost:9000", "", "", http.StatusOK},
		"typed into a browser":           {"localhost:8089", "Sec-Fetch-Site", "none", http.StatusOK},
		"by itself":                      {"localhost:8089", "Origin", "http://localhost:8089", http.StatusOK},
		"a name that was rebound":        {"attacker.test:8089", "", "", http.StatusMisdirectedRequest},
		"one that looks like localhost":  {"localhost.attacker.test:8089", "", "", http.StatusMisdirectedRequest},
		"no name":                        {"", "", "", http.StatusMisdirectedRequest},
		"another origin":                 {"127.0.0.1:8089", "Origin", "http://127.0.0.1:3000", http.StatusForbidden},
		"an origin that hides":           {"127.0.0.1:8089", "Origin", "null", http.StatusForbidden},
		"a script of another page":       {"127.0.0.1:8089", "Sec-Fetch-Site", "cross-site", http.StatusForbidden},
		"a page on another port":         {"127.0.0.1:8089", "Sec-Fetch-Site", "same-site", http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, report.Path, nil)
			r.Host = c.host
			if c.header != "" {
				r.Header.Set(c.header, c.value)
			}
			w := httptest.NewRecorder()
			Local(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })).ServeHTTP(w, r)
			if w.Code != c.want || c.want != http.StatusOK && strings.TrimSpace(w.Body.String()) == "" {
				t.Errorf("%d %s, want %d", w.Code, w.Body, c.want)
			}
		})
	}
}
