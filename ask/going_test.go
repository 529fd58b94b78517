package ask

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

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
	stop   context.CancelFunc
}

// begin runs the plugin until it is stopped, or ends by itself.
func (w *town) begin(args ...string) *going {
	ctx, stop := context.WithCancel(w.Context())
	w.Cleanup(stop)
	g := &going{newOutput(), newOutput(), make(chan error, 1), stop}
	root := Root()
	root.SetArgs(append(args, "--kubeconfig", w.kubeconfig(""), "--cache-dir", w.kept))
	root.SetOut(g.output)
	root.SetErr(g.errOut)
	go func() { g.ended <- root.ExecuteContext(ctx) }()
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

// TestThePageIsServedUntilItIsStopped: at an address that is printed alone, so that programs can read it,
// and no longer.
func TestThePageIsServedUntilItIsStopped(t *testing.T) {
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
	w.put("held", "", terminating)
	for question, want := range map[string]string{
		"state":      `{"cluster":"the context c, ` + w.url,
		"namespaces": `[{"name":"shop"}]`,
		"pending":    `"the component behind the finalizer example.com/hold"`,
		"orphans":    `"kind":"Orphans"`,
		"why?kind=configmaps&namespace=shop&name=leaf":                     `owned by ConfigMap shop/boss"`,
		"tree?kind=configmaps&namespace=shop&name=leaf":                    `"asked":true`,
		"plan?kind=configmaps&namespace=shop&name=boss&cascade=background": `"summary":"Plan: 3 objects are deleted in 3 steps."`,
		"plan?kind=configmaps&namespace=shop&name=leaf&cascade=background": `"lines":[{"count":1,"depth":0,"objects":[{"kind":"configmaps","name":"leaf","namespace":"shop","uid":"uid-leaf"}],"symbol":"-"},`,
		"plan?kind=configmaps&namespace=shop&name=boss&cascade=sideways":   `{"error":"--cascade \"sideways\": must be`,
		"plan?kind=configmaps&namespace=shop&name=--server=x":              `--server=x\" not found`,
		"why?kind=-f&namespace=shop&name=/etc/passwd":                      `{"error":`,
		"purge?name=x": `{"error":"the page answers no question \"purge\""}`,
	} {
		resp, err := http.Get(address + "api/" + question)
		if err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if !strings.Contains(string(said), want) || (resp.StatusCode == http.StatusOK) == strings.HasPrefix(string(said), `{"error"`) {
			t.Errorf("%s: %s %s, want %s", question, resp.Status, said, want)
		}
	}
	g.stop()
	if err := g.end(t); err != nil {
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
