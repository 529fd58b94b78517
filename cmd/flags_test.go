package cmd

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-dev/weir/controller"
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
		"--webhook-url http://weir.test":                        `--webhook-url "http://weir.test": must be https://HOST:PORT`,
		"--webhook-url weir.test:9443":                          `--webhook-url "weir.test:9443": must be https://HOST:PORT`,
		"--webhook-url https://:9443":                           `--webhook-url "https://:9443": must be https://HOST:PORT`,
		"--webhook-url https://weir.test/path":                  `--webhook-url "https://weir.test/path": must be https://HOST:PORT`,
		// An API server refuses a webhook configuration with one of these, long after the process
		// has begun.
		"--webhook-url https://weir.test?a=b":                                                          `--webhook-url "https://weir.test?a=b": must be https://HOST:PORT`,
		"--webhook-url https://weir.test/?":                                                            `--webhook-url "https://weir.test/?": must be https://HOST:PORT`,
		"--webhook-url https://weir.test#a":                                                            `--webhook-url "https://weir.test#a": must be https://HOST:PORT`,
		"--webhook-url https://me:pw@weir.test":                                                        `--webhook-url "https://me:xxxxx@weir.test": must be https://HOST:PORT`,
		"--webhook-url https://weir.test:0":                                                            `--webhook-url "https://weir.test:0": the port must be between 1 and 65535`,
		"--webhook-url https://weir.test:65536":                                                        `--webhook-url "https://weir.test:65536": the port must be between 1 and 65535`,
		"--webhook-url https://weir.test:":                                                             `--webhook-url "https://weir.test:": the port must be between 1 and 65535`,
		"--webhook-url https://[::1]:9443":                                                             "",
		"--webhook-url https://127.0.0.1:9443":                                                         "",
		"--webhook-url https://weir_test:9443":                                                         `--webhook-url "https://weir_test:9443": the host must be a DNS name or an address`,
		"--webhook-url https://[::1]:9443 --webhook-certificates files --webhook-cert-dir d":           "",
		"--webhook-certificates files":                                                                 "--webhook-certificates files: --webhook-cert-dir says where they are",
		"--webhook-certificates cert-manager":                                                          `--webhook-cert-issuer "": must be KIND/NAME, such as ClusterIssuer/internal`,
		"--webhook-certificates cert-manager --webhook-cert-issuer ClusterIssuer":                      `--webhook-cert-issuer "ClusterIssuer": must be KIND/NAME, such as ClusterIssuer/internal`,
		"--webhook-certificates cert-manager --webhook-cert-issuer /x":                                 `--webhook-cert-issuer "/x": must be KIND/NAME, such as ClusterIssuer/internal`,
		"--webhook-certificates cert-manager --webhook-cert-issuer ClusterIssuer/internal":             "",
		"--webhook-certificates cert-manager --webhook-cert-issuer a/b/c":                              `--webhook-cert-issuer "a/b/c": must be KIND/NAME, such as ClusterIssuer/internal`,
		"--webhook-certificates cert-manager --webhook-cert-issuer Issuer/In_ternal":                   `--webhook-cert-issuer "Issuer/In_ternal": must be KIND/NAME, such as ClusterIssuer/internal`,
		"--webhook-certificates cert-manager --webhook-cert-issuer Issuer/i --webhook-cert-secret a/b": "",
		"--webhook-certificates files --webhook-cert-dir d":                                            "",
		"--webhook-certificates vault":                                                                 `--webhook-certificates "vault": must be self, files or cert-manager`,
		"--webhook-service x --webhook-url https://weir.test --webhook-certificates vault":             "--webhook-service and --webhook-url: the webhook is in one place\n--webhook-service \"x\": must be NAMESPACE/NAME\n--webhook-certificates \"vault\": must be self, files or cert-manager",
	} {
		var f targetFlags
		given(t, f.register, args)
		wantError(t, args, f.check(), want)
	}
}

func TestServerFlags(t *testing.T) {
	for args, want := range map[string]string{
		"":                                             "",
		"--webhook-bind-address 127.0.0.1:9443":        "",
		"--webhook-bind-address [::1]:1":               "",
		"--webhook-bind-address :65535":                "",
		"--webhook-bind-address 9443":                  `--webhook-bind-address "9443": must be HOST:PORT`,
		"--webhook-bind-address :0":                    `--webhook-bind-address ":0": the port must be between 1 and 65535`,
		"--webhook-bind-address :65536":                `--webhook-bind-address ":65536": the port must be between 1 and 65535`,
		"--webhook-bind-address :https":                `--webhook-bind-address ":https": the port must be between 1 and 65535`,
		"--shutdown-delay 0s":                          "",
		"--shutdown-delay -1s":                         "--shutdown-delay -1s: must be between 0 and 5m",
		"--shutdown-delay 6m":                          "--shutdown-delay 6m0s: must be between 0 and 5m",
		"--webhook-client-ca /none/ca.crt":             "--webhook-client-ca: read the CA of clients: open /none/ca.crt: no such file or directory",
		"--webhook-client-ca /dev/null":                `--webhook-client-ca: read the CA of clients: missing content for CA bundle "client-ca::/dev/null"`,
		"--webhook-bind-address x --shutdown-delay 1h": "--webhook-bind-address \"x\": must be HOST:PORT\n--shutdown-delay 1h0m0s: must be between 0 and 5m",
	} {
		var f serverFlags
		given(t, f.register, args)
		wantError(t, args, f.check(), want)
	}
}

// TestNothingIsCollectedUnlessAskedFor: who starts Weir without a word about it has a collector
// already.
func TestNothingIsCollectedUnlessAskedFor(t *testing.T) {
	var f collectorFlags
	given(t, func(fs *pflag.FlagSet) { f.register(fs, false) }, "")
	if f.mode != modeCompanion {
		t.Errorf("the mode is %s", f.mode)
	}
}

func TestCollectorFlags(t *testing.T) {
	for args, want := range map[string]string{
		"":                                         "",
		"--mode companion":                         "",
		"--mode shadow --shadow-late 0":            "--shadow-late 0s: must be between 1s and 1h0m0s",
		"--mode replace --beside-builtin":          "",
		"--mode shadow --beside-builtin":           "--beside-builtin is for --mode replace: in other modes weir always works beside the built-in collectors",
		"--brake-most -1":                          "--brake-most -1: must not be less than 0",
		"--brake-most 0":                           "",
		"--mode both":                              `--mode "both": must be replace, companion or shadow`,
		"--archive-mib 0":                          "--archive-mib 0: must be between 1 and 1048576",
		"--in-process Off":                         "",
		"--in-process on":                          `--in-process "on": must be Off or Validate`,
		"--leader-elect-lease-duration 2s":         "--leader-elect-lease-duration 2s: must be between 3s and 1h0m0s",
		"--leader-elect-lease-duration 600000h":    "--leader-elect-lease-duration 600000h0m0s: must be between 3s and 1h0m0s", // more than a Lease can say
		"--leader-elect-namespace weir-system":     "",
		"--leader-elect-namespace a/b":             `--leader-elect-namespace "a/b": must be the name of a namespace`,
		"--leader-elect-namespace Weir":            `--leader-elect-namespace "Weir": must be the name of a namespace`,
		"--ignore Pods":                            `--ignore "Pods": must be a resource and its group, such as leases.coordination.k8s.io`,
		"--ignore .apps":                           `--ignore ".apps": must be a resource and its group, such as leases.coordination.k8s.io`,
		"--ignore pods,,secrets":                   `--ignore "": must be a resource and its group, such as leases.coordination.k8s.io`,
		"--ignore pods,leases.coordination.k8s.io": "",
		"--ignore pods,apps/deployments":           `--ignore "apps/deployments": must be a resource and its group, such as leases.coordination.k8s.io`,
	} {
		var f collectorFlags
		given(t, func(fs *pflag.FlagSet) { f.register(fs, true) }, args)
		wantError(t, args, f.check(), want)
	}
}

// TestSpacesAfterCommasAreNotPartOfNames: who writes "a, b" means b, and no user is called " b".
func TestSpacesAfterCommasAreNotPartOfNames(t *testing.T) {
	for flag, register := range map[string]func(*pflag.FlagSet) func() error{
		"--self-users": func(fs *pflag.FlagSet) func() error {
			var f policyFlags
			f.register(fs)
			return f.check
		},
	} {
		for value, want := range map[string]string{
			"a,b": "", "a b,c": "", // a certificate's name may have one
			"a, b": flag + ` " b": must not begin or end with a space`, "a ,b": flag + ` "a ": must not begin or end with a space`,
		} {
			fs := pflag.NewFlagSet("weir", pflag.ContinueOnError)
			check := register(fs)
			if err := fs.Parse([]string{flag, value}); err != nil {
				t.Fatal(err)
			}
			wantError(t, flag+" "+value, check(), want)
		}
	}
}

func TestProcessFlags(t *testing.T) {
	for args, want := range map[string]string{
		"": "",
		"--metrics-bind-address 0 --health-probe-bind-address 0": "",
		"--metrics-bind-address 127.0.0.1:8443":                  "",
		"--metrics-bind-address [::1]:8443":                      "",
		"--metrics-bind-address 8443":                            `--metrics-bind-address "8443": must be HOST:PORT, or 0 for none`,
		"--metrics-bind-address=":                                `--metrics-bind-address "": must be HOST:PORT, or 0 for none`, // a library would open another port
		"--metrics-bind-address :0":                              `--metrics-bind-address ":0": the port must be between 1 and 65535`,
		"--metrics-bind-address :https":                          `--metrics-bind-address ":https": the port must be between 1 and 65535`,
		"--health-probe-bind-address :65536":                     `--health-probe-bind-address ":65536": the port must be between 1 and 65535`,
		"--health-probe-bind-address localhost":                  `--health-probe-bind-address "localhost": must be HOST:PORT, or 0 for none`,
		"--log-format json":                                      "",
		"--log-format JSON":                                      `--log-format "JSON": must be text or json`,
		"-v 10":                                                  "",
		"-v=-1":                                                  "--verbosity -1: must be between 0 and 10",
		"-v 200":                                                 "--verbosity 200: must be between 0 and 10", // past a byte nothing would be logged at all
		"-v 11 --log-format x --metrics-bind-address y":          "--log-format \"x\": must be text or json\n--verbosity 11: must be between 0 and 10\n--metrics-bind-address \"y\": must be HOST:PORT, or 0 for none",
	} {
		var f processFlags
		given(t, f.register, args)
		wantError(t, args, f.check(), want)
	}
}

func TestWebhookNeedsToKnowWhatItsCertificateIsFor(t *testing.T) {
	for args, want := range map[string]string{
		"":                             "set --webhook-service or --webhook-url: the certificate is made for that address",
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
	given(t, func(fs *pflag.FlagSet) { f.register(fs, false) }, "--ignore pods,leases.coordination.k8s.io")
	if got := f.ignored(); len(got) != 2 || got[0].String() != "pods" || got[1].Group != "coordination.k8s.io" || got[1].Resource != "leases" {
		t.Errorf("ignored are %v", got)
	}
	if n := f.namespaceSyncs(); n != controller.DefaultNamespaceSyncs {
		t.Errorf("%d namespaces at once", n)
	}
	f.drain = false
	if n := f.namespaceSyncs(); n != 0 {
		t.Errorf("%d namespaces at once though somebody else drains them", n)
	}
	if f.leaseDuration != 15*time.Second || f.leaderElect {
		t.Errorf("lease %s, leader election %t", f.leaseDuration, f.leaderElect)
	}
}

// TestNoUserSetsHowLongTheAPIServerTakes: with less an object can be lost whose DELETE began before.
func TestNoUserSetsHowLongTheAPIServerTakes(t *testing.T) {
	for _, args := range []string{"webhook --arming-window 34s", "up --arming-window 1s", "release --arming-window 0"} {
		root := Root()
		root.SetArgs(strings.Fields(args))
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		if err := root.Execute(); err == nil || err.Error() != "unknown flag: --arming-window" {
			t.Errorf("%s: %v", args, err)
		}
	}
	for name, cmd := range map[string]*cobra.Command{"controller": controllerCommand(), "webhook": webhookCommand(), "up": upCommand(), "release": releaseCommand()} {
		for _, flag := range []string{testArmingWindow, "canary-time"} {
			if strings.Contains(cmd.UsageString(), flag) {
				t.Errorf("weir %s --help names --%s", name, flag)
			}
		}
	}
}
