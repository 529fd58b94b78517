package ask

import (
	"cmp"
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/ask/page"
)

func uiCommand() *cobra.Command {
	a := newAsking()
	var port int
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Serve a page that answers all of this",
		Long: `Serve a page on this machine that shows what the delete of an object does, why something does
not go, what is being deleted, and what was. It runs these commands with your own rights, and
runs those of the view that you look at again, about every ten seconds. It changes nothing, and
loads nothing from anywhere else. Whoever has the address that is printed may see what you may
see; it is another one at each start, and works on this machine only. Ctrl-C ends it.`,
		Example: `  kubectl weir ui
  kubectl weir ui -n shop       # this namespace only, for who may not list others
  kubectl weir ui --port 8000`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options, err := a.page(cmd)
			if err != nil {
				return err
			}
			p, err := page.Listen(options, port)
			if err != nil {
				return err
			}
			say(cmd.OutOrStdout(), "%s", p.URL())
			say(cmd.ErrOrStderr(), "The page shows %s with your rights, to whoever has this address. Ctrl-C ends it.",
				options.Cluster)
			return p.Serve(cmd.Context())
		},
	}
	a.registerCluster(cmd)
	cmd.Flags().IntVar(&port, "port", 0, "the port of the page on this machine; 0: any that is free")
	return cmd
}

// page returns the options of the page for the selected cluster.
func (a *asking) page(cmd *cobra.Command) (page.Options, error) {
	config, err := a.flags.ToRESTConfig()
	if err != nil {
		return page.Options{}, err
	}
	disco, err := a.flags.ToDiscoveryClient()
	if err != nil {
		return page.Options{}, err
	}
	if _, err := disco.ServerGroups(); err != nil {
		return page.Options{}, unanswered(err)
	}
	flags := given(cmd.Flags())
	if *a.flags.Context == "" && a.context() != "" { // the current one may be another later
		flags = append(flags, "--context="+a.context())
	}
	r := &runner{flags: flags, turn: make(chan struct{}, pageTurns)}
	return page.Options{Cluster: a.cluster(config.Host), Flags: a.flagsOf(a.context()),
		Ask: func(ctx context.Context, question string, q url.Values) (any, error) {
			if question == "namespaces" {
				return a.namespaces(ctx)
			}
			args, err := pageArgs(question, q, *a.flags.Namespace)
			if err != nil {
				return nil, err
			}
			answer, said, err := r.run(ctx, args)
			if err != nil {
				return nil, printableError{err}
			}
			return map[string]any{"answer": answer, "said": said}, nil
		}}, nil
}

// pageTurns is how many commands the page runs at the same time.
const pageTurns = 2

// pageArgs returns the command that answers a question of the page, as arguments. home is the only
// namespace that the page is about; empty: it is about all.
func pageArgs(question string, q url.Values, home string) (args []string, err error) {
	namespace := cmp.Or(q.Get("namespace"), home)
	switch question {
	case "pending", "orphans":
		args, err = asked{Namespace: namespace, AllNamespaces: namespace == ""}.args()
	case "deleted":
		args, err = asked{Namespace: namespace}.args()
	case "held":
	case "plan":
		args, err = asked{Type: q.Get("kind"), Name: q.Get("name"), Namespace: namespace, Cascade: q.Get("cascade")}.args()
		args = append([]string{"--output=lines"}, args...)
	case "why", "tree":
		args, err = asked{Type: q.Get("kind"), Name: q.Get("name"), Namespace: namespace}.args()
	default:
		err = fmt.Errorf("the page answers no question %q", question)
	}
	return append([]string{question}, args...), err
}

// pageNamespace is a namespace as the page lists it.
type pageNamespace struct {
	Name        string `json:"name"`
	Terminating bool   `json:"terminating,omitempty"`
}

// namespaces returns all namespaces, or the only one that the page is about.
func (a *asking) namespaces(ctx context.Context) ([]pageNamespace, error) {
	if home := *a.flags.Namespace; home != "" {
		return []pageNamespace{{Name: home}}, nil
	}
	client, err := a.client()
	if err != nil {
		return nil, err
	}
	list, err := client.Resource(namespaceKind).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, unanswered(err)
	}
	out := make([]pageNamespace, len(list.Items))
	for i := range list.Items {
		out[i] = pageNamespace{list.Items[i].GetName(), list.Items[i].GetDeletionTimestamp() != nil}
	}
	return out, nil
}

// cluster names the cluster for the user: by the context, or the host.
func (a *asking) cluster(host string) string {
	if name := a.context(); name != "" {
		return fmt.Sprintf("the context %s, %s", name, host)
	}
	return host
}

// context returns the name of the context; empty if there is none.
func (a *asking) context() string {
	if *a.flags.Context != "" {
		return *a.flags.Context
	}
	raw, err := a.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return ""
	}
	return raw.CurrentContext
}
