package ask

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

const (
	// mostCompleted bounds the names that are offered.
	mostCompleted = 500
	// completing is the timeout of requests while a user waits for the shell, unless a flag sets one.
	completing = "2s"
)

// complete offers types for the first argument, and names of objects for the others. It offers
// nothing on errors and timeouts, since no user reads messages while typing.
func (a *asking) complete(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if *a.flags.Timeout == "0" {
		*a.flags.Timeout = completing
	}
	kind, name, slashed := strings.Cut(typed, "/")
	switch {
	case len(args) == 0 && !slashed:
		return a.completeTypes(typed), cobra.ShellCompDirectiveNoFileComp
	case slashed:
		var out []string
		for _, n := range a.completeNames(cmd.Context(), kind, name) {
			out = append(out, kind+"/"+n)
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeNames(cmd.Context(), args[0], typed), cobra.ShellCompDirectiveNoFileComp
}

func (a *asking) completeTypes(typed string) (out []string) {
	disco, err := a.flags.ToDiscoveryClient()
	if err != nil {
		return nil
	}
	lists, _ := disco.ServerPreferredResources() // partial results are used
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			name := gv.WithResource(r.Name).GroupResource().String()
			if strings.HasPrefix(name, typed) && !strings.Contains(r.Name, "/") {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out) // groups come in any order
	return out
}

func (a *asking) completeNames(ctx context.Context, kind, typed string) (out []string) {
	config, err := a.flags.ToRESTConfig()
	if err != nil {
		return nil
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil
	}
	namespace, err := a.namespace()
	if err != nil {
		return nil
	}
	mapping, err := a.mapping(kind)
	if err != nil {
		return nil
	}
	if namespace = cmp.Or(namespace, "default"); mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	}
	in := client.Resource(mapping.Resource).Namespace(namespace)
	list, err := in.List(ctx, metav1.ListOptions{Limit: mostCompleted})
	if err != nil {
		return nil
	}
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].Name, typed) {
			out = append(out, list.Items[i].Name)
		}
	}
	return out
}
