package cmd

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

// compared stands for what was compared.
var compared = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "compared") })

// TestTheMetricsPortHasWhatWasCompared in shadow mode; in others it says which. Where the port
// authenticates, that is enough; where it does not, it is asked for by an address.
func TestTheMetricsPortHasWhatWasCompared(t *testing.T) {
	for name, c := range map[string]struct {
		mode, host string
		secure     bool
		code       int
		says       string
	}{
		"to who may see it":           {modeShadow, "weir.test", true, http.StatusOK, "compared"},
		"to a browser of a laptop":    {modeShadow, "rebound.test:8443", false, http.StatusMisdirectedRequest, "by an address"},
		"to a program on it":          {modeShadow, "127.0.0.1:8443", false, http.StatusOK, "compared"},
		"where nothing is compared":   {modeReplace, "127.0.0.1:8443", true, http.StatusNotFound, "this weir runs in replace mode"},
		"nor beside the built-in one": {modeCompanion, "127.0.0.1:8443", false, http.StatusNotFound, "this weir runs in companion mode"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newManagement(&rest.Config{}, &processFlags{metricsAddress: ":8443", metricsSecure: c.secure}, &collectorFlags{mode: c.mode})
			if c.mode == modeShadow {
				m.shadow = compared
			}
			w := httptest.NewRecorder()
			m.pages()[report.Path].ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://"+c.host+report.Path, nil))
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, c.code, c.says)
			}
		})
	}
}

func TestWhatWasComparedIsServedOnThisMachine(t *testing.T) {
	l, err := listenLocally()
	if err != nil {
		t.Fatal(err)
	}
	m := newManagement(&rest.Config{}, &processFlags{}, &collectorFlags{mode: modeShadow})
	m.shadow = compared
	m.serveLocally(l)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.runnables[len(m.runnables)-1].Start(ctx) }()
	for url, want := range map[string]string{
		"http://" + l.Addr().String() + report.Path: "200 OK: compared",
		"http://" + l.Addr().String() + "/metrics":  "404 Not Found: 404 page not found\n",
	} {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := resp.Status + ": " + string(body); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}

	again, err := listenLocally()
	if err != nil {
		t.Fatal(err)
	}
	if a := again.Addr().(*net.TCPAddr); !a.IP.IsLoopback() || a.String() == l.Addr().String() {
		t.Errorf("where the address is taken, it listens at %s", a)
	}
	_ = again.Close()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("it goes on listening")
	}
}
