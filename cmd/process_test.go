package cmd

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// asCommand tells this binary that it is weir: what a process prints where, and how it ends, is
// seen from outside only.
const asCommand = "WEIR_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(ExitCode(Root().Execute()))
	}
	os.Exit(m.Run())
}

// weirProcess is weir as a process of its own, on no cluster but the one that its arguments name.
// The test's end ends it.
func weirProcess(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	process := exec.CommandContext(t.Context(), os.Args[0], args...)
	process.Env = append(os.Environ(), asCommand+"=yes", "KUBECONFIG=", "KUBERNETES_SERVICE_HOST=", "HOME="+t.TempDir())
	return process
}

// ended is what a process has left: its exit code, and what is on its two streams.
type ended struct {
	code     int
	out, err string
}

func runProcess(t *testing.T, process *exec.Cmd) ended {
	t.Helper()
	return startProcess(t, process)()
}

func startProcess(t *testing.T, process *exec.Cmd) (wait func() ended) {
	t.Helper()
	var out, errOut bytes.Buffer
	process.Stdout, process.Stderr = &out, &errOut
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	return func() ended {
		if exit, err := (*exec.ExitError)(nil), process.Wait(); err != nil && !errors.As(err, &exit) {
			t.Error(err)
		}
		return ended{process.ProcessState.ExitCode(), out.String(), errOut.String()}
	}
}

// TestWrongFlagsEndAProcessBeforeTheClusterIsAsked: with one line for each, and no log. Who only
// mistyped one has changed nothing.
func TestWrongFlagsEndAProcessBeforeTheClusterIsAsked(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("it asks for %s", r.URL) }))
	t.Cleanup(server.Close) // after the cases, which are parallel
	kubeconfig, empty := kubeconfigOf(t, server.URL), t.TempDir()
	const shadow = "--mode shadow changes nothing, and has neither policies nor a webhook: leave --policy-dir, --webhook-service and --webhook-url out"
	for args, want := range map[string]string{
		"controller --mode shadow --webhook-url https://a.test": shadow,
		"controller --mode shadow --policy-dir " + empty:        shadow,
		"controller --policy-dir " + empty + "/none":            "--policy-dir: read policy files: open " + empty + "/none: no such file or directory",
		"controller --policy-dir /dev/null":                     "--policy-dir: read policy files: open /dev/null: not a directory",
		"controller -v 11 --mode x --webhook-service x":         "--verbosity 11: must be between 0 and 10\n--mode \"x\": must be replace, companion or shadow\n--webhook-service \"x\": must be NAMESPACE/NAME",
		"up --mode shadow --webhook-service a/b":                shadow,
		"up --mode shadow --shutdown-delay 1h":                  "--shutdown-delay 1h0m0s: must be between 0 and 5m",
		"up --webhook-url https://a.test --archive-mib 0":       "--archive-mib 0: must be between 1 and 1048576",
		"webhook": "set --webhook-service or --webhook-url: the certificate is made for that address",
		"webhook --webhook-service a/b --webhook-client-ca " + kubeconfig: "--webhook-client-ca: read the CA of clients: error loading CA bundle for",
		"release --stop-controller weir-controller":                       `--stop-controller "weir-controller": must be NAMESPACE/NAME`,
		"release --helm-release weir":                                     "--helm-release weir: set --stop-controller, whose Deployment says of which Helm release it is",
		"release --leader-elect-namespace weir_system":                    `--leader-elect-namespace "weir_system": must be the name of a namespace`,
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			got := runProcess(t, weirProcess(t, append(strings.Fields(args), "--kubeconfig", kubeconfig)...))
			if got.code != 1 || got.out != "" || !strings.HasPrefix(got.err, "Error: "+want) || strings.Count(got.err, "\n") != strings.Count(want, "\n")+1 {
				t.Errorf("exit code %d, on stdout %q, on stderr\n%s\nwant\nError: %s", got.code, got.out, got.err, want)
			}
		})
	}
}

// TestAWrongKubeconfigEndsAProcessAtOnce: it is not to look like a slow start.
func TestAWrongKubeconfigEndsAProcessAtOnce(t *testing.T) {
	for args, want := range map[string]string{
		"--kubeconfig /none":                         "/none: no such file or directory",
		"--kubeconfig /dev/null":                     "/dev/null: invalid configuration",
		"--kubeconfig flags_test.go":                 "flags_test.go: error loading config file",
		"--kubeconfig /dev/null --context elsewhere": `context "elsewhere" does not exist`,
	} {
		e := runProcess(t, weirProcess(t, strings.Fields("controller "+args)...))
		if e.code != 1 || e.out != "" || !strings.Contains(e.err, want) || strings.Contains(e.err, "Usage:") {
			t.Errorf("%s: %+v, want %s", args, e, want)
		}
	}
}
