package cmd

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

// compared stands for what was compared.
var compared = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "compared") })

func TestWhatWasComparedIsServedOnThisMachine(t *testing.T) {
	l, err := listenLocally()
	if err != nil {
		t.Fatal(err)
	}
	m := newManagement(&rest.Config{}, &processFlags{}, &collectorFlags{mode: modeShadow})
	m.serveLocally(l, compared)
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
