package page

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller/snapshot"
)

// TestListsThatHangHoldUpNoAnswer: a kind whose list never comes is left out, and said to be. Questions wait for it only when the
// page is young.
func TestListsThatHangHoldUpNoAnswer(t *testing.T) {
	over := make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		verbs := metav1.Verbs{"list", "watch", "get", "delete"}
		var said any
		switch r.URL.Path {
		case "/api":
			said = metav1.APIVersions{Versions: []string{"v1"}}
		case "/apis":
			said = metav1.APIGroupList{}
		case "/api/v1":
			said = metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
				{Name: "namespaces", Kind: "Namespace", Verbs: verbs}, {Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: verbs},
			}}
		default:
			<-over // as what stands behind an aggregated API may do
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(said)
	}))
	defer api.Close()
	defer close(over)
	config := &rest.Config{Host: api.URL}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	follower, err := (&snapshot.Reader{Config: config, Discovery: client}).Follow(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Listen(Options{Follower: follower}, 0)
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
