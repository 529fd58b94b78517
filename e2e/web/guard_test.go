//go:build web

package web_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// TestOnlyWhoHasTheAddress is answered, and no one by way of another page, another name of this
// machine, or another address.
func TestOnlyWhoHasTheAddress(t *testing.T) {
	u := serve(t, shared.plane.Kubeconfig)
	at, err := url.Parse(u.url)
	if err != nil {
		t.Fatal(err)
	}
	// Each answer, and to whom, is a matter of the tests of package page.
	for name, c := range map[string]struct {
		path   string
		header map[string]string
		status int
	}{
		"the page":               {at.Path, nil, 200},
		"what it asks":           {at.Path + "api/state", map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://" + at.Host}, 200},
		"no token":               {"/", nil, 404},
		"a wrong token":          {"/" + strings.Repeat("A", 26) + "/api/state", nil, 403},
		"a name of the attacker": {at.Path + "api/state", map[string]string{"Host": "rebound.example.com:" + at.Port()}, 421},
		"another page's fetch":   {at.Path + "api/state", map[string]string{"Origin": "http://evil.example.com"}, 403},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at.Host+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range c.header {
			r.Header.Set(k, v)
		}
		r.Host = c.header["Host"]
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if _ = answer.Body.Close(); answer.StatusCode != c.status {
			t.Errorf("%s: %d, want %d", name, answer.StatusCode, c.status)
		}
		if policy := answer.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") {
			t.Errorf("%s: the browser is not told what may be done: %v", name, answer.Header)
		}
	}
	for _, address := range others(t) {
		if c, err := net.DialTimeout("tcp", net.JoinHostPort(address, at.Port()), time.Second); err == nil {
			_ = c.Close()
			t.Errorf("the page answers on %s, too", address)
		}
	}
}

// others are this machine's addresses that are not loopback.
func others(t *testing.T) (out []string) {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && !ip.IP.IsLinkLocalUnicast() {
			out = append(out, ip.IP.String())
		}
	}
	return out
}

// TestShowsWhatTheUserMayList: who may list a namespace only sees that, and is told what is left
// out.
func TestShowsWhatTheUserMayList(t *testing.T) {
	w := newFixture(t)
	w.make("mine", nil)
	other := newFixture(t)
	other.make("theirs", nil)
	_, kubeconfig, err := shared.plane.UserConfig("tenant")
	if err != nil {
		t.Fatal(err)
	}
	roles := shared.client.Resource(roles).Namespace(w.namespace)
	bindings := shared.client.Resource(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}).Namespace(w.namespace)
	for resource, text := range map[dynamic.ResourceInterface]string{
		roles:    `{"kind": "Role", "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]}`,
		bindings: `{"kind": "RoleBinding", "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tenant"}, "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "tenant"}]}`,
	} {
		o := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		o.SetAPIVersion("rbac.authorization.k8s.io/v1")
		o.SetName("tenant")
		if _, err := resource.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	u := serve(t, kubeconfig, "-n", w.namespace)
	p := open(t, u.url+w.place("mine", ""))
	p.see("1 object is deleted.")
	p.see("Incomplete")
	p.expectLost() // a refused question is an error to the browser
	p.hash(other.place("theirs", ""))
	p.see(`configmaps "theirs" is forbidden`)
}
