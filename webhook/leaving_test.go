package webhook

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

func TestConnectionsAreGivenUpWhileLeaving(t *testing.T) {
	var leaving atomic.Bool
	var opened atomic.Int32
	nothing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	s := httptest.NewUnstartedServer(Leaving(nothing, leaving.Load))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	ask := func() (last bool) {
		resp, err := s.Client().Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return resp.Close
	}
	for range 2 {
		if ask() {
			t.Error("a connection was given up before")
		}
	}
	leaving.Store(true)
	for range 2 {
		if !ask() {
			t.Error("the connection can be used again while leaving")
		}
	}
	if n := opened.Load(); n != 2 {
		t.Errorf("%d connections were opened, want 2: one before and until the first answer while leaving, and another", n)
	}
}
