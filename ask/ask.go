// Package ask is kubectl weir, the plugin that answers questions about deletions: it parses flags,
// reads a World and prints an answer.
//
// It is not part of the weir command: kubectl's flags and ways to name objects are a third of the
// binary, and the controller has no use for them.
//
// A command is one goroutine. The server of mcp.go runs one command at a time. Ctrl-C ends the
// process. There are no locks.
package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/ask/snapshot"
	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/internal/version"
)

// askVersion is the apiVersion of the JSON and YAML that these commands print.
const askVersion = "insight.weir.dev/v1beta1"

// Root returns the plugin's command.
func Root() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-weir",
		Short: "Shows what a delete would also delete, in what order, and who has to act",
		Long: `Shows what a delete in a Kubernetes cluster would also delete, in what order, and who has to
act. Nothing has to be installed in the cluster: the objects are listed with your own rights,
and nothing is changed but by confirm, held, restore and purge. Where Weir keeps what is
deleted, restore makes it again.`,
		Annotations:  map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl weir"},
		SilenceUsage: true,
		Version:      version.Weir(),
	}
	root.AddCommand(planCommand(), confirmCommand(), whyCommand(), treeCommand(), pendingCommand(), orphansCommand(),
		heldCommand(), historyCommand(), policiesCommand(), shadowCommand(), deletedCommand(), restoreCommand(),
		purgeCommand(), uiCommand(), mcpCommand())
	for _, cmd := range root.Commands() {
		run := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if err := run(cmd, args); err != nil {
				return printableError{err}
			}
			return nil
		}
	}
	return root
}

// printableError is an error without terminal control sequences: its text may be from webhooks, by
// way of the API server, or from names that users have pasted. It keeps line breaks, since each
// line may be an error.
type printableError struct{ error }

func (e printableError) Unwrap() error { return e.error }

func (e printableError) Error() string {
	lines := strings.Split(e.error.Error(), "\n")
	for i := range lines {
		lines[i] = words.Printable(lines[i])
	}
	return strings.Join(lines, "\n")
}

// ExitError makes the process exit with a code, and without a message.
type ExitError struct{ Code int }

// exit returns an ExitError that cobra does not print.
func exit(cmd *cobra.Command, code int) error {
	cmd.SilenceErrors = true
	return ExitError{code}
}

func (e ExitError) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// asking is what commands that ask about a cluster share: kubectl's flags, the selection of
// objects, and the output.
type asking struct {
	flags         *genericclioptions.ConfigFlags
	files         resource.FilenameOptions
	selector      string
	allNamespaces bool
	all           bool
	output        string
	full          bool

	goesOn  bool    // ignore objects that do not exist, as long as one does
	missing []error // the errors about these
}

func newAsking() *asking { return &asking{flags: genericclioptions.NewConfigFlags(true)} }

func (a *asking) register(cmd *cobra.Command, outputs ...string) {
	a.registerCluster(cmd)
	cmd.Flags().StringVarP(&a.output, "output", "o", "",
		"how it is printed: "+strings.Join(outputs, ", ")+"; default: text")
	cmd.Flags().BoolVar(&a.full, "full", false, "every object, in as many lines as it takes")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		silence()
		debug.SetGCPercent(400) // the process is short-lived
		if a.output != "" && !slices.Contains(outputs, a.output) {
			return fmt.Errorf("--output %q: must be one of %s", a.output, strings.Join(outputs, ", "))
		}
		return nil
	}
}

// registerCluster adds kubectl's flags, which select the cluster and the user.
func (a *asking) registerCluster(cmd *cobra.Command) {
	a.flags.AddFlags(cmd.Flags())
	cmd.Flags().Lookup("cache-dir").DefValue = "$HOME/.kube/cache" // so that help texts do not depend on the user
	cmd.PreRun = func(*cobra.Command, []string) { silence() }
}

// silence silences client-go in the whole process: it logs failed discovery that the command
// reports, too. It runs once, because goroutines of client-go read the logger.
var silence = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })

// registerObjects adds the flags that select objects.
func (a *asking) registerObjects(cmd *cobra.Command) {
	cmd.Flags().StringSliceVarP(&a.files.Filenames, "filename", "f", nil,
		"files, directories or URLs that name the objects")
	cmd.Flags().StringVarP(&a.files.Kustomize, "kustomize", "k", "",
		"a directory with a kustomization that names the objects")
	cmd.Flags().BoolVarP(&a.allNamespaces, "all-namespaces", "A", false, "of all namespaces, with --selector or --all")
	cmd.Flags().BoolVarP(&a.files.Recursive, "recursive", "R", false, "look into the subdirectories of --filename")
	cmd.Flags().StringVarP(&a.selector, "selector", "l", "", "the objects that have these labels")
	cmd.Flags().BoolVar(&a.all, "all", false, "all objects of the types that are named, in the namespace")
}

// style returns how text is drawn on a writer.
func (a *asking) style(w io.Writer) insight.Style {
	s := insight.Style{Full: a.full}
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	s.Colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return s
}

// objects returns the live objects that the arguments and flags select.
func (a *asking) objects(args []string) ([]*resource.Info, error) {
	if len(args) == 0 && len(a.files.Filenames) == 0 && a.files.Kustomize == "" {
		return nil, errors.New("name an object, as in: deployment web, deployment/web, or -f web.yaml")
	}
	namespace, enforce, err := a.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	b := resource.NewBuilder(a.flags).Unstructured().
		NamespaceParam(namespace).DefaultNamespace().AllNamespaces(a.allNamespaces).
		FilenameParam(enforce && !a.allNamespaces, &a.files).
		LabelSelectorParam(a.selector).SelectAllParam(a.all).
		ResourceTypeOrNameArgs(a.all, args...).RequireObject(true).Latest().Flatten()
	if a.goesOn {
		b.ContinueOnError()
	}
	infos, err := b.Do().Infos()
	if a.goesOn && len(infos) > 0 {
		a.missing, err = notThere(err)
	}
	return infos, unanswered(err)
}

// notThere splits off the errors that say that an object, or its kind, does not exist.
func notThere(err error) (missing []error, rest error) {
	is := func(err error) bool {
		return apierrors.IsNotFound(err) || errors.As(err, new(*meta.NoKindMatchError)) ||
			errors.As(err, new(*meta.NoResourceMatchError))
	}
	rest = utilerrors.FilterOut(err, func(err error) bool {
		if !is(err) {
			return false
		}
		missing = append(missing, err)
		return true
	})
	return missing, rest
}

// unanswered adds what to do to the error of an API server that cannot be reached.
func unanswered(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		return fmt.Errorf("the API server does not answer: %w; choose the cluster with "+
			"--kubeconfig, --context or KUBECONFIG", failed)
	}
	return err
}

// namespace returns the namespace for commands that name no object; empty for all.
func (a *asking) namespace() (string, error) {
	if a.allNamespaces {
		return "", nil
	}
	namespace, _, err := a.flags.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// read reads a namespace, or the cluster if it is empty.
func (a *asking) read(ctx context.Context, namespace string) (*insight.World, error) {
	config, err := a.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	disco, err := a.flags.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	disco.Invalidate() // a kind that the cache on disk lacks would be missing from every answer
	w, err := (&snapshot.Reader{Config: config, Discovery: disco}).Read(ctx, namespace)
	return w, unanswered(err)
}

// clusterFlags returns the flags that select the cluster, as they were given, for commands that are
// printed: without them, a pasted command would be sent to the current context, which may be
// another. Flags that select the user are left out.
func (a *asking) clusterFlags() string { return a.flagsOf(*a.flags.Context) }

// flagsOf is clusterFlags with another context.
func (a *asking) flagsOf(context string) string {
	var b strings.Builder
	for _, f := range []struct{ name, value string }{
		{"kubeconfig", *a.flags.KubeConfig}, {"context", context}, {"cluster", *a.flags.ClusterName},
		{"server", *a.flags.APIServer},
	} {
		if f.value != "" {
			fmt.Fprintf(&b, " --%s=%s", f.name, words.Shell(f.value))
		}
	}
	return b.String()
}

// policies returns the policies of the cluster; nil if there are none.
func (a *asking) policies(ctx context.Context, w *insight.World) (*snapshot.Policies, error) {
	config, err := a.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return (&snapshot.Reader{Config: config}).Policies(ctx, w)
}

// scopeOf returns the namespace to read for objects: theirs if they all share one, else empty for
// the cluster. Dependents of a namespaced object are in its namespace.
func scopeOf(objects []*resource.Info) string {
	scope := ""
	for n, o := range objects {
		if o.Namespace == "" || n > 0 && o.Namespace != scope {
			return ""
		}
		scope = o.Namespace
	}
	return scope
}

// print writes JSON or YAML. It returns false if another output is asked for.
func (a *asking) print(w io.Writer, kind string, of map[string]any) (bool, error) {
	if a.output != "json" && a.output != "yaml" {
		return false, nil
	}
	data, err := encode(kind, of)
	if err != nil {
		return true, err
	}
	if a.output == "yaml" {
		if data, err = yaml.JSONToYAML(data); err != nil {
			return true, err
		}
		_, err = w.Write(data)
		return true, err
	}
	_, err = fmt.Fprintln(w, string(data))
	return true, err
}

// encode returns the JSON of an answer with its kind and apiVersion.
func encode(kind string, of map[string]any) ([]byte, error) {
	of["apiVersion"], of["kind"] = askVersion, kind
	return json.MarshalIndent(of, "", "  ")
}

// say writes a line for the user, and ignores errors of the terminal or log that it writes to.
func say(to io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(to, format+"\n", args...) }

// mostUnread bounds what is named of what could not be read, without --full.
const mostUnread = 10

// unread writes what could not be read, so that the answer may lack it.
func (a *asking) unread(w io.Writer, world *insight.World) {
	all := world.Unread()
	for n, u := range all {
		if n == mostUnread-1 && len(all) > mostUnread && !a.full {
			say(w, "incomplete: %d more could not be read: --full names them", len(all)-n)
			return
		}
		say(w, "incomplete: %s could not be read: %s", u.Kind, u.Reason)
	}
}

// infoOf names an object.
func infoOf(i *resource.Info) string {
	name := i.Mapping.Resource.GroupResource().String() + " " + i.Name
	if i.Namespace != "" {
		name = i.Namespace + "/" + name
	}
	return name
}

// whole returns the object of an Info.
func whole(i *resource.Info) *unstructured.Unstructured {
	u, _ := i.Object.(*unstructured.Unstructured)
	return u
}
