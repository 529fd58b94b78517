package ask

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/testkit/apitest"
)

// bare runs the plugin with a kubeconfig that is written as it is.
func bare(t *testing.T, kubeconfig string, args ...string) said {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut strings.Builder
	root := Root()
	root.SetArgs(append(args, "--kubeconfig", file, "--cache-dir", t.TempDir()))
	root.SetOut(&out)
	root.SetErr(&errOut)
	err := root.Execute()
	return said{out.String(), errOut.String(), err}
}

// TestAKubeconfigThatIsWrongIsAnError: of each command, since none can answer, and none answers
// nothing.
func TestAKubeconfigThatIsWrongIsAnError(t *testing.T) {
	const head = `{"apiVersion": "v1", "kind": "Config", `
	for name, c := range map[string]struct{ kubeconfig, says string }{
		"another file":                 {"<html>", "error loading config file"},
		"cut off":                      {head + `"clu`, "error loading config file"},
		"a context that is not there":  {head + `"current-context": "none"}`, "none"},
		"a server that is none":        {head + `"current-context": "c", "clusters": [{"name": "c", "cluster": {"server": "http://a b"}}], "contexts": [{"name": "c", "context": {"cluster": "c"}}]}`, `"http://a b"`},
		"a CA that is none":            {head + `"current-context": "c", "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1", "certificate-authority-data": "eA=="}}], "contexts": [{"name": "c", "context": {"cluster": "c"}}]}`, "certificate"},
		"a CA in a file that is not":   {head + `"current-context": "c", "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1", "certificate-authority": "/none"}}], "contexts": [{"name": "c", "context": {"cluster": "c"}}]}`, "unable to read certificate-authority /none"},
		"a certificate without a key":  {head + `"current-context": "c", "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {"client-certificate-data": "eA=="}}]}`, "client-key-data or client-key must be specified"},
		"a program that is not there":  {head + `"current-context": "c", "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "command": "/none"}}}]}`, "/none"},
		"a token file that is not one": {head + `"current-context": "c", "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {"tokenFile": "/none"}}]}`, "/none"},
	} {
		for _, args := range []string{"plan cm boss", "tree cm boss", "why cm boss", "pending", "orphans", "history", "history cm boss", "policies", "held widgets", "ui", "deleted", "restore x", "purge x"} {
			t.Run(name+": "+args, func(t *testing.T) {
				s := bare(t, c.kubeconfig, strings.Fields(args)...)
				s.mustFail(t, c.says)
				if s.out != "" {
					t.Errorf("it prints\n%s", s.out)
				}
			})
		}
	}
}

// TestAServerIsTrustedByItsCA: and no command answers from one that is not.
func TestAServerIsTrustedByItsCA(t *testing.T) {
	w := newTown(t)
	server := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		http.Redirect(out, r, w.url+r.URL.RequestURI(), http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	const noCluster = `{"apiVersion": "v1", "kind": "Config"}`
	for flags, says := range map[string]string{
		"":                              "certificate signed by unknown authority",
		"--certificate-authority " + ca: "",
		"--insecure-skip-tls-verify":    "",
		"--tls-server-name example.com": "certificate signed by unknown authority",
		"--tls-server-name a.test --certificate-authority " + ca: "not a.test",
		"--token " + token + " --insecure-skip-tls-verify":       "",
		"--client-certificate /none --client-key /none":          "unable to read client-cert /none",
		"--certificate-authority /none":                          "unable to read certificate-authority /none",
	} {
		for _, args := range []string{"plan cm/boss -n shop", "pending -n shop", "history -n shop"} {
			t.Run(args+" "+flags, func(t *testing.T) {
				s := bare(t, noCluster, strings.Fields(args+" --server "+server.URL+" "+flags)...)
				if says != "" {
					s.mustFail(t, says)
				} else if s.failed != nil || s.out == "" {
					t.Errorf("%v, it prints %q", s.failed, s.out)
				}
			})
		}
	}
}

// TestAnAnswerThatBreaksOffIsNone: what a proxy, a load balancer or a dying API server sends
// instead of an answer must not be taken for objects that are not there.
func TestAnAnswerThatBreaksOffIsNone(t *testing.T) {
	breaks := map[string]http.HandlerFunc{
		"a page":  func(out http.ResponseWriter, _ *http.Request) { fmt.Fprint(out, "<html>sign in</html>") },
		"nothing": func(http.ResponseWriter, *http.Request) {},
		"half of it": func(out http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(out, `{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "items": [{"metadata": {"na`)
		},
		"a gateway": func(out http.ResponseWriter, _ *http.Request) { http.Error(out, "upstream", http.StatusBadGateway) },
		"its own end": func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Length", "1000")
			fmt.Fprint(out, `{"kind"`)
		},
	}
	for name, broken := range breaks {
		for args, path := range map[string]string{"pending": "/secrets", "tree cm leaf": "/secrets", "plan cm boss": "/secrets", "orphans -o json": "/secrets", "history": "/events", "policies": "/events"} {
			t.Run(args+": "+name, func(t *testing.T) {
				w := newTown(t)
				server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
					if strings.HasSuffix(r.URL.Path, path) {
						out.Header().Set("Content-Type", "application/json")
						broken(out, r)
						return
					}
					http.Redirect(out, r, w.url+r.URL.RequestURI(), http.StatusTemporaryRedirect)
				}))
				defer server.Close()
				s := weir(t, server.URL, append(strings.Fields(args), "--cache-dir", w.kept)...)
				told := strings.Contains(s.err, "incomplete: ") || strings.Contains(s.out, "? secrets could not be read: ")
				if args == "history" && s.failed == nil || args != "history" && (s.failed != nil || !told) {
					t.Errorf("%v; it says %q, and prints\n%s", s.failed, s.err, s.out)
				}
			})
		}
	}
}

// TestAnAPIServerThatIsSlowIsWaitedForAsLongAsIsAsked: of each kind, and the others are told.
func TestAnAPIServerThatIsSlowIsWaitedForAsLongAsIsAsked(t *testing.T) {
	over := make(chan struct{})
	w := newTown(t)
	t.Cleanup(func() { close(over) })
	w.answer = func(r apitest.Request) *apitest.Reply {
		if strings.HasSuffix(r.Path, "/shop/secrets") {
			<-over
		}
		return nil
	}
	for args, out := range map[string]string{
		"tree cm leaf": "· configmaps/boss\n  ▶ configmaps/leaf\n    · configmaps/twig\n", "pending": "Nothing is being deleted in the namespace ",
		"plan cm boss --exit-code": "? secrets could not be read: ",
	} {
		s := w.run(append(strings.Fields(args), "--request-timeout", "200ms")...)
		if !strings.Contains(s.out, out) || !strings.Contains(s.err+s.out, "secrets could not be read: ") {
			t.Errorf("%s: %v; it says %q, and prints\n%s", args, s.failed, s.err, s.out)
		}
		if want := map[bool]int{true: exitIncomplete}[strings.HasPrefix(args, "plan")]; s.code() != want {
			t.Errorf("%s: exit %d, want %d", args, s.code(), want)
		}
	}
	w.run("pending", "--request-timeout", "soon").mustFail(t, "Invalid timeout value")
}

// TestFilesNameObjects: as kubectl takes them, by name and kind, in the namespace they say.
func TestFilesNameObjects(t *testing.T) {
	w := newTown(t)
	write := func(name, text string) {
		file := filepath.Join(w.kept, "files", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	object := func(name string) string { return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n" }
	write("boss.yaml", object("boss"))
	write("two.yaml", object("leaf")+"---\n"+object("twig"))
	write("deep/in/leaf.json", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "leaf", "namespace": "shop"}}`)
	write("bad/half.yaml", "apiVersion: v1\nkind: [")
	write("none/nobody.yaml", object("nobody"))
	write("kind/widget.yaml", "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: boss}\n")
	write("cluster/void.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: void}\n")
	w.api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: void}}")
	write("notes/readme.txt", "not an object")
	write("kustom/kustomization.yaml", "resources: [boss.yaml]\nnamespace: shop\n")
	write("kustom/boss.yaml", object("boss"))
	for args, c := range map[string]struct{ out, err string }{
		"plan -f $KEPT/files/boss.yaml":                         {"configmaps/shop/boss\nconfigmaps/shop/leaf\nconfigmaps/shop/twig\n", ""},
		"plan -f $KEPT/files/two.yaml":                          {"configmaps/shop/leaf\nconfigmaps/shop/twig\n", ""},
		"plan -f $KEPT/files/two.yaml -f $KEPT/files/boss.yaml": {"configmaps/shop/leaf\nconfigmaps/shop/twig\nconfigmaps/shop/boss\n", ""},
		"plan -f $KEPT/files":                                   {"configmaps/shop/boss\nconfigmaps/shop/leaf\nconfigmaps/shop/twig\n", ""},
		"plan -R -f $KEPT/files/deep":                           {"configmaps/shop/leaf\nconfigmaps/shop/twig\n", ""},
		"plan -f $KEPT/files/deep/in -n other":                  {"", `the namespace from the provided object "shop" does not match the namespace "other". You must pass '--namespace=shop'`},
		"plan -f $KEPT/files/deep/in -n shop":                   {"configmaps/shop/leaf\nconfigmaps/shop/twig\n", ""},
		"plan -f $KEPT/files/cluster -n other":                  {"namespaces/void\n", ""},
		"plan -f $KEPT/files/boss.yaml -n other":                {"", `namespaces "other" not found`},
		"plan -f $KEPT/files/deep":                              {"", "error reading ["},
		"plan -f $KEPT/files/bad":                               {"", "error parsing "},
		"plan -f $KEPT/files/none":                              {"", `configmaps "nobody" not found`},
		"plan -f $KEPT/files/none.yaml":                         {"", "does not exist"},
		"plan -f $KEPT/files/notes":                             {"", "error reading ["},
		"plan -f $KEPT/files/kind":                              {"", `no matches for kind "Widget" in version "example.com/v1"`},
		"plan -k $KEPT/files/kustom":                            {"configmaps/shop/boss\nconfigmaps/shop/leaf\nconfigmaps/shop/twig\n", ""},
		"plan -k $KEPT/files/none":                              {"", "unable to find one of 'kustomization.yaml'"},
		"plan -k $KEPT/files/kustom -f $KEPT/files/boss.yaml":   {"", "only one of -f or -k can be specified"},
		"plan cm -A --all -n other":                             {"configmaps/shop/boss\nconfigmaps/shop/leaf\nconfigmaps/shop/twig\n", ""},
		"plan cm boss -A":                                       {"", "a resource cannot be retrieved by name across all namespaces"},
		"plan cm boss -f $KEPT/files/boss.yaml":                 {"", "when paths, URLs, or stdin is provided as input, you may not specify resource arguments as well"},
		"plan -f $KEPT/files/boss.yaml --all":                   {"configmaps/shop/boss\nconfigmaps/shop/leaf\nconfigmaps/shop/twig\n", ""},
		"plan cm --all -l a=b":                                  {"", "setting 'all' parameter but found a non empty selector"},
		"plan cm -l a=(":                                        {"", "unable to parse requirement"},
		"plan cm":                                               {"", "resource(s) were provided, but no name was specified"},
	} {
		t.Run(args, func(t *testing.T) {
			s := w.run(append(strings.Fields(args), "-o", "json")...)
			if c.err != "" {
				s.mustFail(t, c.err)
			} else if got := s.goes(t); got != c.out {
				t.Errorf("%v; it deletes\n%s\nwant\n%s", s.failed, got, c.out)
			}
		})
	}
}

// TestCommandsThatArePrintedAreOfTheSameCluster: by the flags that were given, whatever is in them
// to a shell, and by none else.
func TestCommandsThatArePrintedAreOfTheSameCluster(t *testing.T) {
	w := newTown(t)
	kubeconfig := func(more string) string {
		return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "now", "clusters": [{"name": "c", "cluster": {"server": %q}}],
			"contexts": [{"name": "now", "context": {"cluster": "c", "namespace": "shop"}}, {"name": %q, "context": {"cluster": "c", "namespace": "shop"}}]}`, w.url, more)
	}
	for name, c := range map[string]struct {
		flags []string
		want  string
	}{
		"none but the kubeconfig": {nil, "configmaps leaf --kubeconfig=FILE\n"},
		"a context":               {[]string{"--context", "it's"}, `configmaps leaf --kubeconfig=FILE --context='it'\''s'` + "\n"},
		"a server":                {[]string{"--server", w.url, "--cluster", "c"}, "configmaps leaf --kubeconfig=FILE --cluster=c --server=" + w.url + "\n"},
		"a user":                  {[]string{"--as", "anna"}, "configmaps leaf --kubeconfig=FILE\n"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "kubeconfig")
			if err := os.WriteFile(file, []byte(kubeconfig("it's")), 0o600); err != nil {
				t.Fatal(err)
			}
			var out, errOut strings.Builder
			root := Root()
			root.SetArgs(append([]string{"why", "cm", "leaf", "--kubeconfig", file, "--cache-dir", t.TempDir()}, c.flags...))
			root.SetOut(&out)
			root.SetErr(&errOut)
			if err := root.Execute(); err != nil {
				t.Fatal(err, errOut.String())
			}
			if got := strings.ReplaceAll(out.String(), file, "FILE"); !strings.HasSuffix(got, "To see more: kubectl weir tree -n shop "+c.want) {
				t.Errorf("it says\n%s\nwant at its end %q", got, c.want)
			}
		})
	}
}
