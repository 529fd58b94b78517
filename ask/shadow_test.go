package ask

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

// said is what a command printed, and how it ended.
type said struct {
	out, err string
	failed   error
}

// weir runs the plugin as its user does, whose kubeconfig has a token that only the API server,
// over TLS, is to see.
func weir(t *testing.T, server string, args ...string) said {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{"name": "c", "cluster": {"server": "` + server + `", "insecure-skip-tls-verify": true}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}], "users": [{"name": "u", "user": {"token": "` + token + `"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return run(append(args, "--kubeconfig", kubeconfig)...)
}

// shadow asks a weir in shadow mode, which takes no kubeconfig.
func shadow(t *testing.T, args ...string) said {
	t.Helper()
	return run(append([]string{"shadow"}, args...)...)
}

func run(args ...string) said {
	var out, errOut bytes.Buffer
	root := Root()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errOut)
	err := root.Execute()
	return said{out.String(), errOut.String(), err}
}

const token = "a-token-of-the-user"

// mustFail wants an error that says something.
func (s said) mustFail(t *testing.T, says ...string) {
	t.Helper()
	for _, want := range says {
		if s.failed == nil || !strings.Contains(s.failed.Error(), want) {
			t.Errorf("it says %v, want %q", s.failed, want)
		}
	}
}

// found is a report as a weir serves it. Its clock is not ours.
func found(t *testing.T) string {
	t.Helper()
	at := time.Date(2001, 1, 2, 0, 0, 0, 0, time.UTC)
	data, err := json.Marshal(report.Report{Since: at.Add(-25 * time.Hour), At: at, ComparedSeconds: (25 * time.Hour).Seconds(), Ready: true, Decisions: map[string]map[string]int{"delete": {report.Done: 3}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestShadowReadsWhatAWeirServes(t *testing.T) {
	served := found(t)
	mux := http.NewServeMux()
	mux.HandleFunc(report.Path, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("it was sent credentials")
		}
		fmt.Fprint(w, served)
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	for _, url := range []string{s.URL, s.URL + "/", s.URL + report.Path} {
		if got := shadow(t, "--url", url); got.failed != nil || !strings.Contains(got.out, "delete: 3 were carried out") || !strings.Contains(got.out, "No difference.") {
			t.Errorf("%s: %+v", url, got)
		}
	}
	if got := shadow(t, "--url", s.URL, "--gate", "24h"); got.failed != nil {
		t.Errorf("the gate: %v", got.failed)
	}
	shadow(t, "--url", s.URL, "--gate", "26h").mustFail(t, "the gate is closed: it has compared for 25h0m0s, and not for 26h0m0s yet")
	shadow(t, "--url", s.URL, "--accept", "x").mustFail(t, "--accept is for --gate")
	asJSON := shadow(t, "--url", s.URL, "-o", "json")
	if r, err := report.Read(strings.NewReader(asJSON.out)); err != nil || r.Decisions["delete"][report.Done] != 3 {
		t.Errorf("as JSON: %v, %+v", err, asJSON)
	}

}

func TestShadowSaysWhatToDoAboutAnAnswerThatIsNone(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"another mode": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "this weir runs in replace mode\x1b[2J", http.StatusNotFound)
		}, `404 this weir runs in replace mode\x1b[2J: it is no weir in shadow mode: set mode: shadow in the chart`},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/else", http.StatusFound) }, "answers 302"},
		"a failure": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", http.StatusInternalServerError) }, "500 broken; the log of weir may say why"},
		"a page":    {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "invalid character"},
		"without an end": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"since": "`)
			for range 1000 {
				if _, err := w.Write(bytes.Repeat([]byte("0"), 64<<10)); err != nil {
					return // it has read enough
				}
			}
		}, "more than 16 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(c.answer)
			defer s.Close()
			shadow(t, "--url", s.URL).mustFail(t, c.says)
		})
	}
	s := httptest.NewServer(nil)
	s.Close()
	shadow(t, "--url", s.URL).mustFail(t, "does weir controller --mode shadow run there?", "kubectl -n weir-system port-forward deployment/weir-controller 8089")
}

func TestShadowIsAskedInOneWay(t *testing.T) {
	for args, want := range map[string]string{
		"--url https://weir.test":             `--url "https://weir.test": must be http://HOST:PORT, such as http://127.0.0.1:8089`,
		"--url 127.0.0.1:8089":                `--url "127.0.0.1:8089": must be http://HOST:PORT`,
		"--url http://127.0.0.1:8089/metrics": "must be http://HOST:PORT",
		"--url=":                              "must be http://HOST:PORT",
		"shadow.json":                         `unknown command "shadow.json" for "kubectl weir shadow"`,
		"-o yaml":                             `--output "yaml": must be text or json`,
	} {
		shadow(t, strings.Fields(args)...).mustFail(t, want)
	}
}
