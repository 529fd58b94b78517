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

// mostCompleted is how many names are offered.
const mostCompleted = 500

// complete offers types for the first argument, and names of objects for the others. What fails offers nothing: no user reads
// messages while typing.
func (a *asking) complete(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	kind, name, slashed := strings.Cut(typed, "/")
	switch {
	case len(args) == 0 && !slashed:
		return a.completeTypes(typed), cobra.ShellCompDirectiveNoFileComp
	case slashed:
		var out []string
		for _, n := range a.completeNames(kind, name) {
			out = append(out, kind+"/"+n)
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeNames(args[0], typed), cobra.ShellCompDirectiveNoFileComp
}

func (a *asking) completeTypes(typed string) (out []string) {
	disco, err := a.flags.ToDiscoveryClient()
	if err != nil {
		return nil
	}
	lists, _ := disco.ServerPreferredResources() // what answers is better than nothing
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if name := gv.WithResource(r.Name).GroupResource().String(); strings.HasPrefix(name, typed) && !strings.Contains(r.Name, "/") {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out) // groups come in any order
	return out
}

func (a *asking) completeNames(kind, typed string) (out []string) {
	mapper, err := a.flags.ToRESTMapper()
	if err != nil {
		return nil
	}
	gvr, err := mapper.ResourceFor(schema.ParseGroupResource(kind).WithVersion(""))
	if err != nil {
		return nil
	}
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
	gvk, err := mapper.KindFor(gvr)
	if err != nil {
		return nil
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil
	}
	var in metadata.ResourceInterface = client.Resource(gvr)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		in = client.Resource(gvr).Namespace(cmp.Or(namespace, "default"))
	}
	list, err := in.List(context.Background(), metav1.ListOptions{Limit: mostCompleted})
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
