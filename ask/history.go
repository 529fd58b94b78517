package ask

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/policies/v1beta1"
)

func historyCommand() *cobra.Command {
	a := newAsking()
	cmd := &cobra.Command{
		Use:   "history [TYPE NAME | TYPE/NAME]",
		Short: "Show what was collected, and because of which object",
		Long: `Show what a garbage collector has deleted because of which object, in a namespace, in the
cluster, or because of one object, which may be gone. Weir's controller records it in an Event
on that object where it collects (--mode replace). Every client that may create Events can write
such an Event: the proof of who deleted what is the audit log of the API server.`,
		Example: `  kubectl weir history -n shop
  kubectl weir history deployment web
  kubectl weir history deployment web -A   # those of all namespaces
  kubectl weir history -A`,
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, about, err := a.historyOf(args)
			if err != nil {
				return unanswered(err)
			}
			events, err := a.cascades(cmd.Context(), namespace)
			if err != nil {
				return unanswered(err)
			}
			all := insight.History(events)
			if about != nil {
				all = insight.RecordsOf(events, about.Object, about.kindName, a.allNamespaces)
			}
			if done, err := a.print(cmd.OutOrStdout(), "History", map[string]any{"items": all}); done {
				return err
			}
			return insight.DrawHistory(cmd.OutOrStdout(), all, time.Now(), a.style(cmd.OutOrStdout()))
		},
	}
	a.register(cmd, "json", "yaml")
	cmd.Flags().BoolVarP(&a.allNamespaces, "all-namespaces", "A", false,
		"the whole cluster; Events of cluster-scoped objects are in the namespace default")
	return cmd
}

// askedAbout is an object that need not exist any more.
type askedAbout struct {
	insight.Object
	kindName string
}

// historyOf returns the object that is asked about, nil for all, and the namespace of the Events
// about it; empty for all.
func (a *asking) historyOf(args []string) (namespace string, about *askedAbout, err error) {
	if namespace, err = a.namespace(); err != nil || len(args) == 0 {
		return namespace, nil, err
	}
	if about, err = a.named(args, namespace); err != nil {
		return "", nil, err
	}
	if namespace != "" && about.Namespace == "" {
		namespace = metav1.NamespaceDefault // where Events about cluster-scoped objects are
	}
	return namespace, about, nil
}

// named returns the object that arguments name, whether it exists or not.
func (a *asking) named(args []string, namespace string) (*askedAbout, error) {
	kind, name, slashed := strings.Cut(args[0], "/")
	if !slashed && len(args) == 2 {
		name = args[1]
	}
	if slashed != (len(args) == 1) || len(args) > 2 || kind == "" || name == "" {
		return nil, errors.New("name one object, as in: deployment web, or deployment/web; or none, for all of the namespace")
	}
	mapping, err := a.mapping(kind)
	if err != nil {
		return nil, err
	}
	o := &askedAbout{kindName: mapping.GroupVersionKind.Kind, Object: insight.Object{
		Kind: mapping.Resource.GroupResource().String(), Namespace: namespace, Name: name}}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		o.Namespace = ""
	}
	return o, nil
}

// mapping returns the kind for a type argument.
func (a *asking) mapping(kind string) (*meta.RESTMapping, error) {
	mapper, err := a.flags.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	gvk, err := mapper.KindFor(schema.ParseGroupResource(kind).WithVersion(""))
	if err != nil {
		return nil, fmt.Errorf("the cluster serves no type %q: %w", kind, err)
	}
	return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// cascades returns the Events that record cascades.
func (a *asking) cascades(ctx context.Context, namespace string) (all []corev1.Event, err error) {
	client, err := a.client()
	if err != nil {
		return nil, err
	}
	all, _, err = eventsOf(ctx, client, namespace, "reason="+v1beta1.ReasonCascade, math.MaxInt)
	return all, err
}
