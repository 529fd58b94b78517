package script

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
)

// usual is a small cluster: both scopes, several groups, a custom resource with two versions, and a
// kind that is served but not collected.
var usual = []struct {
	short string
	graph.Resource
}{
	{"cm", graph.Resource{Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true}},
	{"po", graph.Resource{Resource: "pods", Kind: "Pod", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true}},
	{"no", graph.Resource{Resource: "nodes", Kind: "Node", Version: "v1", Versions: []string{"v1"}, Collected: true}},
	{"ev", graph.Resource{Resource: "events", Kind: "Event", Version: "v1", Versions: []string{"v1"}, Namespaced: true}},
	{"rs", graph.Resource{Group: "apps", Resource: "replicasets", Kind: "ReplicaSet", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true}},
	{"deploy", graph.Resource{Group: "apps", Resource: "deployments", Kind: "Deployment", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true}},
	{"wd", graph.Resource{Group: "example.com", Resource: "widgets", Kind: "Widget", Version: "v1", Versions: []string{"v1", "v1beta1"}, Namespaced: true, Collected: true}},
}

// Usual returns the kinds that "serve" without arguments serves.
func Usual() []graph.Resource {
	var out []graph.Resource
	for _, u := range usual {
		out = append(out, u.Resource)
	}
	return out
}

// kindOf reads RESOURCE[.GROUP], or the short or bare name of a usual kind.
func kindOf(word string) (schema.GroupResource, error) {
	for _, u := range usual {
		if word == u.short || word == u.Resource.Resource {
			return u.GroupResource(), nil
		}
	}
	resource, group, _ := strings.Cut(word, ".")
	r, err := unescape(resource)
	if err != nil {
		return schema.GroupResource{}, err
	}
	g, err := unescape(group)
	return schema.GroupResource{Group: g, Resource: r}, err
}

func kindWord(gr schema.GroupResource) string {
	if gr.Group == "" {
		return escapeDots(gr.Resource)
	}
	return escapeDots(gr.Resource) + "." + escape(gr.Group)
}

// resourceOf reads a kind as "serve" has it: a usual one, or one that is spelled out.
func resourceOf(word string) (graph.Resource, error) {
	name, written, ok := strings.Cut(word, ":")
	gr, err := kindOf(name)
	if err != nil {
		return graph.Resource{}, err
	}
	if !ok {
		for _, u := range usual {
			if u.GroupResource() == gr {
				return u.Resource, nil
			}
		}
		return graph.Resource{}, fmt.Errorf("kind %q has to be spelled out: RESOURCE.GROUP:KIND:VERSION", word)
	}
	parts := strings.Split(written, ":")
	if len(parts) < 2 || gr.Resource == "" || parts[0] == "" || parts[1] == "" {
		return graph.Resource{}, fmt.Errorf("kind %q is not RESOURCE.GROUP:KIND:VERSION", word)
	}
	versions := strings.Split(parts[1], ",")
	return graph.Resource{
		Group: gr.Group, Resource: gr.Resource, Kind: parts[0], Version: versions[0], Versions: versions,
		Namespaced: !slices.Contains(parts[2:], "cluster"), Collected: !slices.Contains(parts[2:], "uncollected"),
	}, nil
}

func resourceWord(r graph.Resource) string {
	for _, u := range usual {
		if u.GroupResource() == r.GroupResource() && slices.Equal(u.Versions, r.Versions) &&
			u.Kind == r.Kind && u.Version == r.Version && u.Namespaced == r.Namespaced && u.Collected == r.Collected {
			return kindWord(r.GroupResource())
		}
	}
	w := kindWord(r.GroupResource()) + ":" + r.Kind + ":" + strings.Join(r.Versions, ",")
	if !r.Namespaced {
		w += ":cluster"
	}
	if !r.Collected {
		w += ":uncollected"
	}
	return w
}

// served reads the arguments of "serve".
func served(words []string) ([]graph.Resource, error) {
	if len(words) == 0 {
		return Usual(), nil
	}
	var out []graph.Resource
	for _, w := range words {
		if w == "none" {
			continue
		}
		if w == "all" {
			out = append(out, Usual()...)
			continue
		}
		if less, ok := strings.CutPrefix(w, "-"); ok {
			gr, err := kindOf(less)
			if err != nil {
				return nil, err
			}
			out = slices.DeleteFunc(out, func(r graph.Resource) bool { return r.GroupResource() == gr })
			continue
		}
		r, err := resourceOf(w)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}
