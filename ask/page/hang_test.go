package page

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/internal/testkit/apitest"
)

// TestListsThatHangHoldUpNoAnswer: a kind whose list never comes is left out, and said to be.
// Questions wait for it only when the page is young.
func TestListsThatHangHoldUpNoAnswer(t *testing.T) {
	over := make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := discovered(apitest.Request{Path: r.URL.Path})
		if said == nil {
			<-over // as what stands behind an aggregated API may do
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(said.Body)
	}))
	defer api.Close()
	defer close(over)
	p, err := Listen(Options{Follower: follow(t, &rest.Config{Host: api.URL}, "")}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.listener.Close() }()
	p.begun = time.Now().Add(-listTime)
	began := time.Now()
	answer := httptest.NewRecorder()
	p.settled(p.pending)(answer, httptest.NewRequest(http.MethodGet, "/", nil))
	if took := time.Since(began); took > listTime/2 || answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "its first list has not come yet") {
		t.Errorf("after %v: %d %s", took, answer.Code, answer.Body)
	}
}
