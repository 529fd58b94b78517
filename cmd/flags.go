package cmd

import (
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/weir-dev/weir/controller"
	"github.com/weir-dev/weir/controller/brake"
	"github.com/weir-dev/weir/internal/version"
	"github.com/weir-dev/weir/policies/v1beta1"
	"github.com/weir-dev/weir/webhook"
)

// clusterFlags select the API server.
type clusterFlags struct {
	kubeconfig, context string
}

func (f *clusterFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.kubeconfig, "kubeconfig", "",
		"path of a kubeconfig; default: $KUBECONFIG, the cluster weir runs in, or ~/.kube/config")
	fs.StringVar(&f.context, "context", "", "context of the kubeconfig; default: its current one")
}

// restConfig finds the API server. A kubeconfig that is named must exist and be valid.
func (f *clusterFlags) restConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		from := "the default places ($KUBECONFIG, the cluster, ~/.kube/config)"
		if f.kubeconfig != "" {
			from = f.kubeconfig
		}
		return nil, fmt.Errorf("find an API server through %s: %w", from, err)
	}
	config.UserAgent = "weir/" + version.Weir()
	return config, nil
}

// processFlags are the flags of every long-running process.
type processFlags struct {
	metricsAddress string
	metricsSecure  bool
	healthAddress  string
	logFormat      string
	verbosity      int
}

func (f *processFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.metricsAddress, "metrics-bind-address", ":8443",
		"address of metrics and the debug graph; 0 turns them off")
	fs.BoolVar(&f.metricsSecure, "metrics-secure", true,
		"serve these over TLS, to authenticated and authorized clients only")
	fs.StringVar(&f.healthAddress, "health-probe-bind-address", ":8081",
		"address of /healthz and /readyz; 0 turns them off")
	fs.StringVar(&f.logFormat, "log-format", "text", "text or json")
	fs.IntVarP(&f.verbosity, "verbosity", "v", 0, "1 also logs why nothing is done")
}

// maxVerbosity is the chart's limit, too. Levels of the log are bytes, so past 127 nothing would be
// logged at all.
const maxVerbosity = 10

func (f *processFlags) check() error {
	var w wrong
	w.unless(f.logFormat == "text" || f.logFormat == "json", "--log-format %q: must be text or json", f.logFormat)
	w.unless(f.verbosity >= 0 && f.verbosity <= maxVerbosity, "--verbosity %d: must be between 0 and %d", f.verbosity,
		maxVerbosity)
	for _, a := range [][2]string{{"--metrics-bind-address", f.metricsAddress},
		{"--health-probe-bind-address", f.healthAddress}} {
		if a[1] != noAddress {
			w.add(checkAddress(a[0], a[1], "HOST:PORT, or 0 for none"))
		}
	}
	return errors.Join(w...)
}

// wrong is all that is wrong with flags.
type wrong []error

func (w *wrong) unless(right bool, format string, args ...any) {
	if !right {
		w.add(fmt.Errorf(format, args...))
	}
}

func (w *wrong) add(err error) { *w = append(*w, err) }

// noAddress turns a server off. An empty address would not: controller-runtime then serves metrics
// at its default port.
const noAddress = "0"

// checkAddress returns what is wrong with an address to listen at. must describes a valid value.
func checkAddress(flag, address, must string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%s %q: must be %s", flag, address, must)
	}
	return checkPort(flag, address, port)
}

func checkPort(flag, address, port string) error {
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("%s %q: the port must be between 1 and 65535", flag, address)
	}
	return nil
}

// servesMetrics reports whether metrics are served over TLS.
func (f *processFlags) servesMetrics() bool { return f.metricsSecure && f.metricsAddress != noAddress }

// logger returns the log, and makes the libraries write to it.
func (f *processFlags) logger() logr.Logger {
	log := zap.New(zap.UseDevMode(f.logFormat == "text"), zap.Level(zapcore.Level(-f.verbosity)),
		zap.StacktraceLevel(zapcore.DPanicLevel), func(o *zap.Options) { o.TimeEncoder = zapcore.RFC3339NanoTimeEncoder })
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client"))
	stdlog.SetOutput(webhook.Lines(log.WithName("server")))
	stdlog.SetFlags(0) // the log adds the time
	return log
}

// forTests registers a duration that the API server, or another collector, needs. The flag is
// hidden from users. Tests set less, because their servers are faster.
func forTests(fs *pflag.FlagSet, name string, to *time.Duration, needed time.Duration) {
	fs.DurationVar(to, name, needed, "")
	fs.Lookup(name).Hidden = true
}

// collectorFlags are the flags of the collector.
type collectorFlags struct {
	mode       string
	drain      bool
	ignore     []string
	inProcess  string
	archiveMiB int
	overlap    time.Duration
	shadowLate time.Duration
	beside     bool
	canary     time.Duration
	brake      brake.Limits

	leaderElect          bool
	leaderElectNamespace string
	leaseDuration        time.Duration
}

const (
	modeReplace   = "replace"
	modeCompanion = "companion"
	modeShadow    = "shadow"
)

const (
	inProcessOff      = "Off"
	inProcessValidate = "Validate"
)

// Bounds of --leader-elect-lease-duration. Past the longest, no user would know why no other
// process takes over; a Lease has 32 bits for it.
const minLease, maxLease = 3 * time.Second, time.Hour

// maxShadowLate bounds --shadow-late: a difference that is reported later is of no help.
const maxShadowLate = time.Hour

func (f *collectorFlags) register(fs *pflag.FlagSet, leaderElect bool) {
	fs.StringVar(&f.mode, "mode", modeCompanion, "companion: kube-controller-manager's garbage collector and "+
		"namespace controller run, and Weir does only what policies ask for; "+
		"replace: Weir does their work, and they must be off; shadow: Weir changes nothing, and compares what it would "+
		"collect with what they do")
	fs.DurationVar(&f.shadowLate, "shadow-late", controller.DefaultShadowLate,
		"in shadow mode: how long the cluster's collector may take for what Weir has decided; after that it is a difference")
	fs.BoolVar(&f.drain, "drain-namespaces", true,
		"drain namespaces: in replace mode all, in place of kube-controller-manager's namespace controller, which must "+
			"be off then; in companion mode those that a DrainPolicy selects")
	fs.StringSliceVar(&f.ignore, "ignore", nil, "kinds to leave alone, as resource.group; events always are")
	fs.StringVar(&f.inProcess, "in-process", inProcessValidate,
		"Validate: write what the API server can judge of policies by itself as ValidatingAdmissionPolicies, which hold "+
			"while Weir is away; Off: write none, and delete those that were written. Nothing is written where it is not "+
			"said where the webhook is")
	fs.IntVar(&f.archiveMiB, "archive-mib", 64, "how many MiB all records of deleted objects may have together, "+
		"compressed, where a policy has archive; beyond that, the oldest of a namespace that exceeds its share are purged")
	forTests(fs, "test-in-process-overlap", &f.overlap, 30*time.Second)
	fs.BoolVar(&f.beside, "beside-builtin", false,
		"in replace mode: collect even if another garbage collector works. Without this flag Weir waits until none does: "+
			"it keeps a ConfigMap "+v1beta1.CollectorCanary+" whose owner never existed, which any other collector deletes")
	forTests(fs, "canary-time", &f.canary, controller.DefaultCanaryStands)
	f.brake = brake.DefaultLimits
	fs.IntVar(&f.brake.Most, "brake-most", f.brake.Most,
		"in replace mode: most objects that are deleted for owners that Weir did not see deleted: of one kind within an "+
			"hour, of all kinds within ten minutes, and no more than 500 where that is more than a tenth of a kind; "+
			"more is held until a person decides (HeldCollection); 0 for no limit")
	fs.BoolVar(&f.leaderElect, "leader-elect", leaderElect,
		"work only while holding a Lease, so that several replicas can run")
	fs.StringVar(&f.leaderElectNamespace, "leader-elect-namespace", "",
		"namespace of the Lease; default: weir's own, or kube-system outside a cluster")
	fs.DurationVar(&f.leaseDuration, "leader-elect-lease-duration", 15*time.Second,
		"how long a Lease is valid without renewal")
}

// check returns what is wrong with the flags, before anything is started.
func (f *collectorFlags) check() error {
	var w wrong
	w.unless(f.mode == modeReplace || f.mode == modeCompanion || f.mode == modeShadow,
		"--mode %q: must be replace, companion or shadow", f.mode)
	w.unless(f.shadowLate >= time.Second && f.shadowLate <= maxShadowLate, "--shadow-late %s: must be between 1s and %s",
		f.shadowLate, maxShadowLate)
	w.unless(f.inProcess == inProcessOff || f.inProcess == inProcessValidate, "--in-process %q: must be Off or Validate",
		f.inProcess)
	w.unless(f.archiveMiB >= 1 && f.archiveMiB <= 1<<20, "--archive-mib %d: must be between 1 and %d", f.archiveMiB, 1<<20)
	w.unless(!f.beside || f.mode == modeReplace, "--beside-builtin is for --mode replace: in other modes weir always "+
		"works beside the built-in collectors")
	w.unless(f.brake.Most >= 0, "--brake-most %d: must not be less than 0", f.brake.Most)
	w.add(checkNamespace("--leader-elect-namespace", f.leaderElectNamespace))
	w.unless(f.leaseDuration >= minLease && f.leaseDuration <= maxLease,
		"--leader-elect-lease-duration %s: must be between %s and %s", f.leaseDuration, minLease, maxLease)
	if i := slices.IndexFunc(f.ignore, func(s string) bool { return len(validation.IsDNS1123Subdomain(s)) > 0 }); i >= 0 {
		w.unless(false, "--ignore %q: must be a resource and its group, such as leases.coordination.k8s.io", f.ignore[i])
	}
	return errors.Join(w...)
}

// checkNamespace returns what is wrong with the name of a namespace; empty is valid.
func checkNamespace(flag, name string) error {
	if name != "" && len(validation.IsDNS1123Label(name)) > 0 {
		return fmt.Errorf("%s %q: must be the name of a namespace", flag, name)
	}
	return nil
}

// checkUsers finds names that no user has. Of "a, b" the second would be " b", and would match no
// user.
func checkUsers(flag string, users []string) error {
	if i := slices.IndexFunc(users, func(s string) bool { return strings.TrimSpace(s) != s }); i >= 0 {
		return fmt.Errorf("%s %q: must not begin or end with a space", flag, users[i])
	}
	return nil
}

// namespaceSyncs returns how many namespaces are drained at once; 0 if that is left to another
// controller.
func (f *collectorFlags) namespaceSyncs() int {
	if !f.drain || f.mode == modeShadow {
		return 0
	}
	return controller.DefaultNamespaceSyncs
}

func (f *collectorFlags) ignored() []schema.GroupResource {
	out := make([]schema.GroupResource, len(f.ignore))
	for i, s := range f.ignore {
		out[i] = schema.ParseGroupResource(s)
	}
	return out
}
