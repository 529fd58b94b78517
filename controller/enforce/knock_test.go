package enforce

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/weir-dev/weir/policies"
)

// What is silence to the API server is told apart from here.
func TestKnocking(t *testing.T) {
	paths := map[policies.Webhook]string{policies.WebhookCanary: "/canary"}
	for name, c := range map[string]struct {
		prepare func(*httptest.Server)
		hangs   bool
		trusts  bool
		closed  bool
		want    door
	}{
		"it answers":               {trusts: true, want: doorAnswers},
		"it is not trusted":        {want: doorAnswers},
		"it wants a certificate":   {trusts: true, prepare: func(s *httptest.Server) { s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert} }, want: doorAnswers},
		"it hangs":                 {trusts: true, hangs: true, want: doorOpen},
		"nobody listens":           {trusts: true, closed: true, want: doorShut},
		"nobody listens, or trust": {closed: true, want: doorShut},
	} {
		t.Run(name, func(t *testing.T) {
			end := make(chan struct{})
			asked := make(chan string, 1)
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked <- r.Method + " " + r.URL.Path
				if c.hangs {
					<-end
				}
			}))
			if c.prepare != nil {
				c.prepare(s)
			}
			s.StartTLS()
			defer s.Close()
			defer close(end)
			by := called{token: "token"}
			if c.trusts {
				by.bundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
			}
			if c.closed {
				s.Close()
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			k := &knocker{target: &WebhookTarget{URL: s.URL, Paths: paths, CanaryNamespace: "weir-system"}}
			if got := k.knock(ctx, by); got != c.want {
				t.Errorf("door %d, want %d", got, c.want)
			}
			if c.trusts && c.want == doorAnswers && c.prepare == nil {
				if got := <-asked; got != "POST /token/canary" {
					t.Errorf("it was asked %s", got)
				}
			}
		})
	}
}

// A Service is reached by its address: no name is looked up, which a NetworkPolicy may forbid.
func TestAServiceIsReachedByItsAddress(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: "weir"}, Spec: corev1.ServiceSpec{ClusterIP: at.Hostname()}})
	k := &knocker{target: &WebhookTarget{Service: types.NamespacedName{Namespace: "weir-system", Name: "weir"}}, services: client.CoreV1(), port: at.Port()}
	if got := k.address("token"); got != "https://weir.weir-system.svc:443/token" {
		t.Errorf("the address is %s", got)
	}
	if got := k.knock(t.Context(), called{token: "token"}); got != doorAnswers {
		t.Errorf("door %d", got)
	}
}
