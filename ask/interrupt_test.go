package ask

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/testkit/apitest"
)

// interrupting is a town whose answer about a path does not come before the user has pressed
// Ctrl-C, and not after it either. The test's own process is not to end by a signal that comes too
// late.
func interrupting(t *testing.T, path string) *town {
	w := newTown(t)
	w.core = []metav1.APIResource{{Name: "pods", SingularName: "pod", Kind: "Pod", Namespaced: true, Verbs: metav1.Verbs{"list", "get"}}}
	w.api.Put("configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: weir-file-policies, namespace: weir-system}, data: {policies: '[]'}}")
	w.api.Put("pods", "{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}}")
	late, over, once := make(chan os.Signal, 1), make(chan struct{}), sync.Once{}
	signal.Notify(late, os.Interrupt)
	t.Cleanup(func() {
		close(over)
		signal.Stop(late)
	})
	w.answer = func(r apitest.Request) *apitest.Reply {
		if !strings.HasSuffix(r.Method+" "+r.Path, path) {
			return nil
		}
		once.Do(func() {
			if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
				t.Error(err)
			}
		})
		<-over
		return apitest.Refuse(500, "InternalError", "it is over")
	}
	return w
}

// TestCtrlCEndsACommandWithoutAnAnswer: what was read so far is not all, and must not be shown as
// if it were.
func TestCtrlCEndsACommandWithoutAnAnswer(t *testing.T) {
	for args, path := range map[string]string{
		"plan cm boss": "/shop/secrets", "plan cm boss -o json": "/shop/secrets", "plan cm boss --out $KEPT/plan.json": "/shop/configmaps", "plan held/configmaps": "/v1/secrets",
		"tree cm leaf": "/shop/secrets", "why cm leaf": "/shop/secrets", "why cm leaf -o yaml": "/events", "why cm nobody": "/events", "why cm lost --try": "DELETE /api/v1/namespaces/shop/configmaps/lost",
		"pending": "/shop/secrets", "pending -A -o name": "/v1/configmaps", "orphans": "/shop/secrets", "history": "/events", "history cm boss": "/events",
		"plan pod web --out $KEPT/plan.json": "/shop/pods",
		"policies":                           "/deletionpolicies", "policies -o json": "/events",
	} {
		t.Run(args, func(t *testing.T) {
			w := interrupting(t, path)
			w.put("lost", "never")
			s := w.run(strings.Fields(args)...)
			if s.failed == nil || s.out != "" || strings.Contains(s.err, "incomplete") {
				t.Errorf("it fails with %v, says %q, and prints\n%s", s.failed, s.err, s.out)
			}
			if _, err := os.Stat(w.kept + "/plan.json"); err == nil {
				t.Error("a plan is kept that is not whole")
			}
		})
	}
}

// TestCtrlCEndsACommandWhileDiscoveryHangs: which takes no context of its own, and is the first
// thing that is asked of an API server.
func TestCtrlCEndsACommandWhileDiscoveryHangs(t *testing.T) {
	const kept = `{"apiVersion": "insight.weir.dev/v1alpha1", "kind": "Plan", "roots": [{"kind": "configmaps", "namespace": "shop", "name": "boss", "uid": "uid-boss"}]}`
	for _, args := range []string{
		"plan cm boss", "plan held/configmaps", "plan --check $KEPT/plan.json", "tree cm leaf", "tree cm leaf --watch", "why cm leaf", "why cm nobody", "pending", "orphans -A",
		"history cm boss", "ui",
	} {
		for _, path := range []string{"GET /api", "GET /apis", "GET /api/v1"} {
			t.Run(args+": "+path, func(t *testing.T) {
				w := interrupting(t, path)
				if err := os.WriteFile(w.kept+"/plan.json", []byte(kept), 0o600); err != nil {
					t.Fatal(err)
				}
				s := w.run(strings.Fields(args)...)
				if s.failed == nil || s.failed.Error() != "interrupted" || s.out != "" || s.err != "Error: interrupted\n" {
					t.Errorf("it fails with %v, says %q, and prints\n%s", s.failed, s.err, s.out)
				}
			})
		}
	}
}

// TestCtrlCEndsACommandThatReadsAFileOfAnotherServer: which may never answer, as what writes to
// standard input may not.
func TestCtrlCEndsACommandThatReadsAFileOfAnotherServer(t *testing.T) {
	w := newTown(t)
	asked, over := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-over
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(over) })
	g := w.begin("plan", "-f", server.URL+"/boss.yaml")
	<-asked
	if err := g.interrupt(t); err == nil || err.Error() != "interrupted" || g.String() != "" {
		t.Errorf("%v, and it prints\n%s", err, g)
	}
}

// output is what a command prints while it goes on.
type output struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
}

func newOutput() *output { return &output{more: make(chan struct{}, 1)} }

func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.more <- struct{}{}:
	default:
	}
	return o.text.Write(data)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// has waits until what is printed has a text.
func (o *output) has(t *testing.T, want string) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for !strings.Contains(o.String(), want) {
		select {
		case <-o.more:
		case <-ctx.Done():
			t.Fatalf("there is no %q in\n%s", want, o)
		}
	}
	return o.String()
}

// going is a command that goes on until it is stopped.
type going struct {
	*output
	errOut *output
	ended  chan error
}

// begin runs the plugin until Ctrl-C, or it ends by itself.
func (w *town) begin(args ...string) *going {
	g := &going{newOutput(), newOutput(), make(chan error, 1)}
	late := make(chan os.Signal, 1)
	signal.Notify(late, os.Interrupt)
	w.Cleanup(func() { signal.Stop(late) })
	root := Root()
	root.SetArgs(append(args, "--kubeconfig", w.kubeconfig(""), "--cache-dir", w.kept))
	root.SetOut(g.output)
	root.SetErr(g.errOut)
	go func() { g.ended <- root.Execute() }()
	return g
}

// kubeconfig writes one for the town; more is JSON of its cluster, after a comma.
func (w *town) kubeconfig(more string) string {
	file := w.kept + "/kubeconfig"
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{"name": "c", "cluster": {"server": %q%s}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "namespace": "shop"}}]}`, w.url, more)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	return file
}

func (g *going) interrupt(t *testing.T) error {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	return g.end(t)
}

func (g *going) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-g.ended:
		return err
	case <-time.After(time.Minute):
		t.Fatalf("it goes on, and has printed\n%s", g)
		return nil
	}
}

// TestATreeIsDrawnAgainWhenItChanges: each time whole, after a line that tells drawings apart; and
// its end is that of the object.
func TestATreeIsDrawnAgainWhenItChanges(t *testing.T) {
	w := newTown(t)
	g := w.begin("tree", "cm", "leaf", "--watch", "--down")
	const first = "---\n▶ configmaps/leaf\n  · configmaps/twig\n"
	g.has(t, first)
	w.put("bud", "leaf")
	const second = "---\n▶ configmaps/leaf\n  · configmaps/bud, twig\n"
	g.has(t, second)
	w.put("other", "boss") // is not below it
	w.put("twig", "leaf", ", finalizers: [example.com/hold]")
	const third = "---\n▶ configmaps/leaf\n  · configmaps/bud\n  · configmaps/twig: finalizers example.com/hold\n"
	g.has(t, third)
	w.api.Remove("configmaps/shop/leaf")
	if err := g.end(t); err != nil {
		t.Error(err)
	}
	if want := first + second + third + "---\nshop/configmaps leaf is gone.\n"; g.String() != want || g.errOut.String() != "" {
		t.Errorf("it has drawn\n%s%s\nwant\n%s", g, g.errOut, want)
	}
}

// TestCtrlCIsHowAWatchEnds: without an error.
func TestCtrlCIsHowAWatchEnds(t *testing.T) {
	g := newTown(t).begin("tree", "cm", "leaf", "--watch")
	g.has(t, "▶ configmaps/leaf")
	if err := g.interrupt(t); err != nil {
		t.Error(err)
	}
}

// TestAWatchTellsWhatItCannotFollow: and that an object is gone only where its kind can be read.
func TestAWatchTellsWhatItCannotFollow(t *testing.T) {
	for name, c := range map[string]struct{ path, want string }{
		"another kind":    {"/shop/secrets", "---\n· configmaps/boss\n  ▶ configmaps/leaf\n    · configmaps/twig\nincomplete: secrets could not be read: not now\n"},
		"its own kind":    {"/shop/configmaps", "---\nincomplete: configmaps could not be read: not now\n"},
		"namespaces only": {"/v1/namespaces", "▶ configmaps/leaf\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(t)
			w.refuse(c.path, 403, "Forbidden", "not now")
			g := w.begin("tree", "cm", "leaf", "--watch")
			text := g.has(t, c.want)
			if err := g.interrupt(t); err != nil || strings.Contains(text, "is gone") {
				t.Errorf("%v, after\n%s", err, text)
			}
		})
	}
}

// TestThePageIsServedUntilCtrlC: at an address that is printed alone, so that programs can read it,
// and no longer.
func TestThePageIsServedUntilCtrlC(t *testing.T) {
	w := newTown(t)
	g := w.begin("ui")
	g.errOut.has(t, "The page shows the context c, "+w.url+" with your rights, to whoever has this address. Ctrl-C ends it.\n")
	address := strings.TrimSpace(g.String())
	if strings.ContainsAny(address, " \n") || !strings.HasPrefix(address, "http://127.0.0.1:") || !strings.HasSuffix(address, "/") {
		t.Fatalf("it prints %q", g)
	}
	for path, want := range map[string]int{"": http.StatusOK, "../": http.StatusNotFound} {
		resp, err := http.Get(address + path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s%s: %s, want %d", address, path, resp.Status, want)
		}
	}
	if err := g.interrupt(t); err != nil {
		t.Error(err)
	}
	if resp, err := http.Get(address); err == nil {
		_ = resp.Body.Close()
		t.Error("it is served still")
	}
	if len(w.written) > 0 {
		t.Errorf("it has written: %q", w.written)
	}
}

// TestAPageThatCannotBeServedIsAnError: which says what is wrong with it.
func TestAPageThatCannotBeServedIsAnError(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	w := newTown(t)
	for args, want := range map[string]string{
		"ui --port " + port:               "listen on the loopback interface: listen tcp 127.0.0.1:" + port + ": bind: address already in use",
		"ui --port 65536":                 "listen on the loopback interface: listen tcp: address 65536: invalid port",
		"ui --port -1":                    "listen on the loopback interface: listen tcp: address -1: invalid port",
		"ui cm boss":                      `unknown command "cm" for "kubectl weir ui"`,
		"ui --server http://127.0.0.1:1":  "the API server does not answer: ",
		"ui --context none":               `context "none" does not exist`,
		"ui -o json":                      "unknown shorthand flag: 'o' in -o",
		"ui --certificate-authority none": "unable to read certificate-authority none",
	} {
		w.run(strings.Fields(args)...).mustFail(t, want)
	}
}

// TestThePageNamesTheCluster: as its user knows it.
func TestThePageNamesTheCluster(t *testing.T) {
	w := newTown(t)
	file := w.kubeconfig("")
	for name, c := range map[string]struct{ kubeconfig, context, want string }{
		"the current context": {file, "", "the context c, https://h"},
		"one that is named":   {file, "other", "the context other, https://h"},
		"no kubeconfig":       {os.DevNull, "", "https://h"},
		"one with a name":     {os.DevNull, "alone", "the context alone, https://h"},
		"none that is there":  {w.kept + "/none", "", "https://h"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAsking()
			*a.flags.KubeConfig, *a.flags.Context = c.kubeconfig, c.context
			if got := a.cluster("https://h"); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
