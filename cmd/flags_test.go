package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// given are flags as a user gives them.
func given(t *testing.T, register func(*pflag.FlagSet), args string) {
	t.Helper()
	fs := pflag.NewFlagSet("weir", pflag.ContinueOnError)
	register(fs)
	if err := fs.Parse(strings.Fields(args)); err != nil {
		t.Fatal(err)
	}
}

// wantError compares all that is wrong, one a line.
func wantError(t *testing.T, args string, err error, want string) {
	t.Helper()
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != want {
		t.Errorf("%s\n%s\nwant\n%s", args, text, want)
	}
}

func TestTargetFlags(t *testing.T) {
	for args, want := range map[string]string{
		"":                                      "",
		"--webhook-service weir-system/weir":    "",
		"--webhook-url https://weir.test:9443":  "",
		"--webhook-url https://weir.test:9443/": "",
		"--webhook-url https://weir.test --webhook-service a/b": "--webhook-service and --webhook-url: the webhook is in one place",
		"--webhook-service weir":                                `--webhook-service "weir": must be NAMESPACE/NAME`,
		"--webhook-service /weir":                               `--webhook-service "/weir": must be NAMESPACE/NAME`,
		"--webhook-service weir/":                               `--webhook-service "weir/": must be NAMESPACE/NAME`,
		"--webhook-service a/b/c":                               `--webhook-service "a/b/c": must be NAMESPACE/NAME`,
		"--webhook-service Weir/weir":                           `--webhook-service "Weir/weir": must be NAMESPACE/NAME`,
		"--webhook-service a.b/weir":                            `--webhook-service "a.b/weir": must be NAMESPACE/NAME`,
		"--webhook-cert-secret x":                               `--webhook-cert-secret "x": must be NAMESPACE/NAME`,
		"--webhook-token-secret x":                              `--webhook-token-secret "x": must be NAMESPACE/NAME`,
		"--webhook-url http://weir.test":                        `--webhook-url "http://weir.test": must be https://HOST:PORT`,
		"--webhook-url weir.test:9443":                          `--webhook-url "weir.test:9443": must be https://HOST:PORT`,
		"--webhook-url https://:9443":                           `--webhook-url "https://:9443": must be https://HOST:PORT`,
		"--webhook-url https://weir.test/path":                  `--webhook-url "https://weir.test/path": must be https://HOST:PORT`,
		"--webhook-url https://[::1]:9443":                      "",
		"--webhook-url https://127.0.0.1:9443":                  "",
		"--webhook-url https://weir_test:9443":                  `--webhook-url "https://weir_test:9443": the host must be a DNS name or an address`,
		"--webhook-url https://[::1]:9443 --webhook-certificates files --webhook-cert-dir d": "",
		"--webhook-certificates files":                                                     "--webhook-certificates files: --webhook-cert-dir says where they are",
		"--webhook-certificates cert-manager":                                              `--webhook-cert-issuer "": must be KIND/NAME, such as ClusterIssuer/internal`,
		"--webhook-certificates cert-manager --webhook-cert-issuer ClusterIssuer":          `--webhook-cert-issuer "ClusterIssuer": must be KIND/NAME, such as ClusterIssuer/internal`,
		"--webhook-certificates cert-manager --webhook-cert-issuer /x":                     `--webhook-cert-issuer "/x": must be KIND/NAME, such as ClusterIssuer/internal`,
		"--webhook-certificates cert-manager --webhook-cert-issuer ClusterIssuer/internal": "",
		"--webhook-certificates vault":                                                     `--webhook-certificates "vault": must be self, files or cert-manager`,
		"--webhook-service x --webhook-url https://weir.test --webhook-certificates vault": "--webhook-service and --webhook-url: the webhook is in one place\n--webhook-service \"x\": must be NAMESPACE/NAME\n--webhook-certificates \"vault\": must be self, files or cert-manager",
	} {
		var f targetFlags
		given(t, f.register, args)
		wantError(t, args, f.check(), want)
	}
}

func TestServerFlags(t *testing.T) {
	for args, want := range map[string]string{
		"":                                      "",
		"--webhook-bind-address 127.0.0.1:9443": "",
		"--webhook-bind-address [::1]:1":        "",
		"--webhook-bind-address :65535":         "",
		"--webhook-bind-address 9443":           `--webhook-bind-address "9443": must be HOST:PORT`,
		"--webhook-bind-address :0":             `--webhook-bind-address ":0": the port must be between 1 and 65535`,
		"--webhook-bind-address :65536":         `--webhook-bind-address ":65536": the port must be between 1 and 65535`,
		"--webhook-bind-address :https":         `--webhook-bind-address ":https": the port must be between 1 and 65535`,
		"--arming-window 1s":                    "",
		"--arming-window 999ms":                 "--arming-window 999ms: must be between 1s and 5m",
		"--arming-window 5m":                    "",
		"--arming-window 5m1s":                  "--arming-window 5m1s: must be between 1s and 5m",
		"--shutdown-delay 0s":                   "",
		"--shutdown-delay -1s":                  "--shutdown-delay -1s: must be between 0 and 5m",
		"--shutdown-delay 6m":                   "--shutdown-delay 6m0s: must be between 0 and 5m",
		"--webhook-bind-address x --arming-window 0s --shutdown-delay 1h": "--webhook-bind-address \"x\": must be HOST:PORT\n--arming-window 0s: must be between 1s and 5m\n--shutdown-delay 1h0m0s: must be between 0 and 5m",
	} {
		var f serverFlags
		given(t, f.register, args)
		wantError(t, args, f.check(), want)
	}
}

// TestNothingIsCollectedUnlessAskedFor: who starts Weir without a word about it has a collector already.
func TestNothingIsCollectedUnlessAskedFor(t *testing.T) {
	var f collectorFlags
	given(t, func(fs *pflag.FlagSet) { f.register(fs, false) }, "")
	if f.mode != modeCompanion {
		t.Errorf("the mode is %s", f.mode)
	}
}

func TestCollectorFlags(t *testing.T) {
	for args, want := range map[string]string{
		"":                                                       "",
		"--mode companion":                                       "",
		"--mode shadow --shadow-report r.json":                   "",
		"--mode shadow --shadow-late 0":                          "--shadow-late 0s: must be between 1s and 1h0m0s",
		"--shadow-report r.json":                                 "--shadow-report is for --mode shadow",
		"--mode shadow --shadow-address=":                        "",
		"--mode shadow --shadow-address [::1]:8090":              "",
		"--mode shadow --shadow-address :8089":                   `--shadow-address ":8089": must be a loopback address and a port, such as 127.0.0.1:8089, because who asks there is not authenticated; others read /shadow of --metrics-bind-address`,
		"--mode shadow --shadow-address 10.0.0.1:8089":           `--shadow-address "10.0.0.1:8089": must be a loopback address and a port, such as 127.0.0.1:8089, because who asks there is not authenticated; others read /shadow of --metrics-bind-address`,
		"--mode replace --beside-builtin":                        "",
		"--mode shadow --beside-builtin":                         "--beside-builtin is for --mode replace: in other modes weir always works beside the built-in collectors",
		"--canary-time 1h":                                       "--canary-time 1h0m0s: must be between 100ms and 10m0s",
		"--brake-users gc":                                       "",
		"--mode replace --brake-users gc":                        "--brake-users is for --mode companion: in replace mode Weir holds what itself would delete",
		"--brake-users system:kube-controller-manager":           "--brake-users system:kube-controller-manager: other controllers have that name, too, and delete what has owners; run kube-controller-manager with --use-service-account-credentials, and name system:serviceaccount:kube-system:generic-garbage-collector",
		"--mode both":                                            `--mode "both": must be replace, companion or shadow`,
		"--concurrent-syncs 1000 --concurrent-namespace-syncs 1": "",
		"--concurrent-gc-syncs 0":                                "--concurrent-syncs 0: must be between 1 and 1000",
		"--concurrent-namespace-syncs 1001":                      "--concurrent-namespace-syncs 1001: must be between 1 and 1000",
		"--back-fill-qps -1":                                     "--back-fill-qps -1: must not be less than 0",
		"--compare-graph-every 0":                                "",
		"--compare-graph-every 1s":                               "",
		"--compare-graph-every -1s":                              "--compare-graph-every -1s: must be 0 or at least 1s",
		"--leader-elect-lease-duration 2s":                       "--leader-elect-lease-duration 2s: must be at least 3s",
		"--ignore pods,leases.coordination.k8s.io":               "",
		"--ignore pods,apps/deployments":                         `--ignore "apps/deployments": must be a resource and its group, such as leases.coordination.k8s.io`,
	} {
		var f collectorFlags
		given(t, func(fs *pflag.FlagSet) { f.register(fs, true) }, args)
		wantError(t, args, f.check(), want)
	}
}

func TestWebhookNeedsToKnowWhatItsCertificateIsFor(t *testing.T) {
	for args, want := range map[string]string{
		"":                             "--webhook-service or --webhook-url: what the certificate is for is not known without it",
		"--webhook-service a/b":        "",
		"--webhook-url https://a.test": "",
		"--webhook-certificates files --webhook-cert-dir d": "",
	} {
		var f webhookFlags
		given(t, func(fs *pflag.FlagSet) {
			f.processFlags.register(fs)
			f.policyFlags.register(fs)
			f.targetFlags.register(fs)
			f.serverFlags.register(fs)
		}, args)
		wantError(t, args, f.check(), want)
	}
}

func TestPolicyDirMustBeReadable(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.yaml"), []byte("spec: ["), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := (&policyFlags{dir: dir}).check(); err != nil { // what is in the files is not for the flags to say
		t.Error(err)
	}
	missing := filepath.Join(dir, "none")
	wantError(t, "--policy-dir", (&policyFlags{dir: missing}).check(), "--policy-dir: read policy files: open "+missing+": no such file or directory")
}

func TestNamesOfTheWebhook(t *testing.T) {
	for args, want := range map[string]string{
		"--webhook-service weir-system/weir":   "weir.weir-system.svc",
		"--webhook-url https://weir.test:9443": "weir.test",
		"--webhook-url https://weir.test":      "weir.test",
		"--webhook-url https://[::1]:9443":     "::1",
	} {
		var f targetFlags
		given(t, f.register, args)
		if got := strings.Join(f.names(), " "); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}

func TestIgnoredKindsAndNamespaceSyncs(t *testing.T) {
	var f collectorFlags
	given(t, func(fs *pflag.FlagSet) { f.register(fs, false) }, "--ignore pods,leases.coordination.k8s.io --concurrent-namespace-syncs 7")
	if got := f.ignored(); len(got) != 2 || got[0].String() != "pods" || got[1].Group != "coordination.k8s.io" || got[1].Resource != "leases" {
		t.Errorf("ignored are %v", got)
	}
	if n := f.namespaceSyncs(); n != 7 {
		t.Errorf("%d namespaces at once, want 7", n)
	}
	f.drain = false
	if n := f.namespaceSyncs(); n != 0 {
		t.Errorf("%d namespaces at once though somebody else drains them", n)
	}
	if f.leaseDuration != 15*time.Second || f.leaderElect {
		t.Errorf("lease %s, leader election %t", f.leaseDuration, f.leaderElect)
	}
}
