//go:build full

package e2e

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// TestAPIServerSaysWhatIsNotThere: weir takes a 404 for proof that an object is
// absent only if it names the kind, the group and the object. Every kind that can
// be an owner must say so.
func TestAPIServerSaysWhatIsNotThere(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.define(w.definition("Widget", apiextensionsv1.NamespaceScoped, "v1"))
	w.make(`widget one`) // its API is served
	client, err := discovery.NewDiscoveryClientForConfig(w.plane.Config)
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		t.Fatal(err)
	}
	// Events have two names, and one storage: one of them.
	twins := map[schema.GroupResource]schema.GroupResource{{Group: "events.k8s.io", Resource: "events"}: {Resource: "events"}}
	asked, widgets := 0, false
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "get") || !slices.Contains(r.Verbs, "delete") {
				continue
			}
			gvr := gv.WithResource(r.Name)
			const name = "nobody-has-this-name"
			if r.Namespaced {
				_, err = w.dynamic.Resource(gvr).Namespace(w.namespace).Get(t.Context(), name, metav1.GetOptions{})
			} else {
				_, err = w.dynamic.Resource(gvr).Get(t.Context(), name, metav1.GetOptions{})
			}
			var status apierrors.APIStatus
			if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
				if strings.HasSuffix(gvr.Group, ".example.com") && gvr.Group != w.kinds["widget"].Group {
					continue // of another test, which may be over
				}
				t.Errorf("%s: %v, want a 404", gvr, err)
				continue
			}
			asked++
			widgets = widgets || gvr == w.kinds["widget"].gvr()
			d := status.Status().Details
			if d == nil || d.Name != name {
				t.Errorf("%s: the details of the 404 are %+v", gvr, d)
				continue
			}
			said := schema.GroupResource{Group: d.Group, Resource: d.Kind}
			if twin, ok := twins[gvr.GroupResource()]; said != gvr.GroupResource() && (!ok || said != twin) {
				t.Errorf("%s: the 404 is about %s", gvr, said)
			}
		}
	}
	if t.Logf("%d kinds were asked", asked); asked < 40 || !widgets {
		t.Errorf("%d kinds were asked, the custom resource: %t", asked, widgets)
	}
}
