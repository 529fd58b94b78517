package controller

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

func TestInShadowModeNothingIsSentThatChangesAnything(t *testing.T) {
	var arrived atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived.Add(1) }))
	defer server.Close()
	c, err := newClients(&rest.Config{Host: server.URL}, true)
	if err != nil {
		t.Fatal(err)
	}
	for name, client := range map[string]*http.Client{"bounded": c.boundedClient, "unbounded": c.client} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			req, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/api/v1/namespaces/shop", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err == nil {
				_ = resp.Body.Close()
				t.Errorf("%s: %s was sent", name, method)
			}
		}
		resp, err := client.Get(server.URL + "/api")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	if n := arrived.Load(); n != 2 {
		t.Errorf("%d requests arrived, want the two reads", n)
	}
}
