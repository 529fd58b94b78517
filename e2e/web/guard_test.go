//go:build web

package web_test

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestOnlyWhoHasTheAddress is answered, and no one by way of another page, another name of this
// machine, or another address.
func TestOnlyWhoHasTheAddress(t *testing.T) {
	u := serve(t, shared.plane.Kubeconfig)
	at, err := url.Parse(u.url)
	if err != nil {
		t.Fatal(err)
	}
	get := func(method, path string, header map[string]string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+at.Host+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range header {
			r.Header.Set(k, v)
			if k == "Host" {
				r.Host = v
			}
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer, string(body)
	}
	for name, c := range map[string]struct {
		method, path string
		header       map[string]string
		status       int
		says         string
	}{
		"the page":                 {"GET", at.Path, nil, 200, "<title>Weir</title>"},
		"what it asks":             {"GET", at.Path + "api/state", map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://" + at.Host}, 200, `"kinds"`},
		"a link from another page": {"GET", at.Path, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}, 200, "<title>"},
		"no token":                 {"GET", "/", nil, 404, ""},
		"a wrong token":            {"GET", "/" + strings.Repeat("A", 26) + "/api/state", nil, 403, "wrong token"},
		"another name":             {"GET", at.Path, map[string]string{"Host": "weir.example.com"}, 421, "another name"},
		"a name of the attacker":   {"GET", at.Path + "api/state", map[string]string{"Host": "rebound.example.com:" + at.Port()}, 421, "another name"},
		"another page's fetch":     {"GET", at.Path + "api/state", map[string]string{"Origin": "http://evil.example.com"}, 403, "another page"},
		"another page's script":    {"GET", at.Path + "assets/page.js", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "script"}, 403, "another page"},
		"another port's page":      {"GET", at.Path + "api/state", map[string]string{"Sec-Fetch-Site": "same-site"}, 403, "another page"},
		"a write":                  {"POST", at.Path + "api/plan", nil, 405, ""},
		"a delete":                 {"DELETE", at.Path + "api/object?kind=configmaps&name=x", nil, 405, ""},
		"outside the files":        {"GET", at.Path + "assets/../../page.go", nil, 404, ""},
		"no object":                {"GET", at.Path + "api/object", nil, 400, "name an object"},
		"no such kind":             {"GET", at.Path + "api/object?kind=unicorns&name=x", nil, 400, "no kind"},
		"no such propagation":      {"GET", at.Path + "api/plan?cascade=sideways", nil, 400, "must be background, foreground or orphan"},
		"a plan that is not kept":  {"GET", at.Path + "api/lines?plan=x&below=0&from=0", nil, 410, "not kept"},
	} {
		t.Run(name, func(t *testing.T) {
			answer, body := get(c.method, c.path, c.header) //nolint:bodyclose // get closes it
			if answer.StatusCode != c.status || !strings.Contains(body, c.says) {
				t.Errorf("%s %s: %d %s, want %d and %q", c.method, c.path, answer.StatusCode, body, c.status, c.says)
			}
			policy := answer.Header.Get("Content-Security-Policy")
			if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || answer.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s %s: the browser is not told what may be done: %v", c.method, c.path, answer.Header)
			}
		})
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
	client, err := kubernetes.NewForConfig(shared.plane.Config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.RbacV1().Roles(w.namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "tenant"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.RbacV1().RoleBindings(w.namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "tenant"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "tenant"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "tenant"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	u := serve(t, kubeconfig, "-n", w.namespace)
	p := open(t, u.url+w.place("mine", ""))
	p.see("1 object is deleted.")
	p.see("kinds that you may not list or watch")
	p.hash("#/found?q=theirs")
	p.see("There is none that you may list.")
	p.expectLost() // a 404 is an error to the browser
	p.hash(other.place("theirs", ""))
	p.see(`there is no configmaps "theirs"`)
}
