package insight

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

var spaces = graph.Resource{Resource: "namespaces", Kind: "Namespace", Version: "v1", Versions: []string{"v1"}, Collected: true, Deletable: true, Listable: true}

// clusterOf is a World of some ConfigMaps of the namespace x; of other kinds are those that are
// named.
func clusterOf(configs []metav1.PartialObjectMetadata, others map[string][]metav1.PartialObjectMetadata) *World {
	kinds := append(slices.Clone(someKinds), spaces)
	w := NewWorld("", kinds)
	for _, k := range kinds {
		list := others[k.Resource]
		if k.Resource == configMaps.Resource {
			list = configs
		}
		w.List(k.GroupResource(), "1", list)
	}
	return w
}

// ending is an object that is being deleted, and held by finalizers.
func ending(m metav1.PartialObjectMetadata, finalizers ...string) metav1.PartialObjectMetadata {
	m.DeletionTimestamp, m.Finalizers = &metav1.Time{Time: noon}, finalizers
	return m
}

// blocking is a reference that blocks the owner.
func blocking(kind graph.Resource, name string) metav1.OwnerReference {
	r := reference(kind, name)
	r.BlockOwnerDeletion = new(true)
	return r
}

// controlling is a reference to the controller.
func controlling(kind graph.Resource, name string) metav1.OwnerReference {
	r := reference(kind, name)
	r.Controller = new(true)
	return r
}

// TestWhySaysWhatItDoesNotKnow: and nothing that is not so.
func TestWhySaysWhatItDoesNotKnow(t *testing.T) {
	cm := func(name string, owners ...metav1.OwnerReference) metav1.PartialObjectMetadata {
		return object(configMaps, "x", name, owners...)
	}
	for name, c := range map[string]struct {
		asked   string
		configs []metav1.PartialObjectMetadata
		others  map[string][]metav1.PartialObjectMetadata
		unread  bool // Secrets
		says    string
		not     string
	}{
		"orphaning, and all was read": {asked: "o", configs: []metav1.PartialObjectMetadata{ending(cm("o"), "orphan")}, says: "none is left", not: "not known"},
		"orphaning, and not all was read": {asked: "o", configs: []metav1.PartialObjectMetadata{ending(cm("o"), "orphan")}, unread: true,
			says: "whether some are left is not known, because these could not be read: secrets", not: "none is left"},
		"foreground, and not all was read": {asked: "o", configs: []metav1.PartialObjectMetadata{ending(cm("o"), "foregroundDeletion")}, unread: true,
			says: "whether dependents are left is not known", not: "nothing blocks it"},
		"a cycle of two": {asked: "a", configs: []metav1.PartialObjectMetadata{ending(cm("a", blocking(configMaps, "b")), "foregroundDeletion"), ending(cm("b", blocking(configMaps, "a")), "foregroundDeletion")},
			says: "it waits in a cycle for configmaps/x/b.", not: "nothing blocks it"},
		"a cycle of one": {asked: "a", configs: []metav1.PartialObjectMetadata{ending(cm("a", blocking(configMaps, "a")), "foregroundDeletion")},
			says: "it waits in a cycle for configmaps/x/a.", not: "nothing blocks it"},
		"a cycle that something else holds": {asked: "a", configs: []metav1.PartialObjectMetadata{ending(cm("a", blocking(configMaps, "b")), "foregroundDeletion"),
			ending(cm("b", blocking(configMaps, "a")), "foregroundDeletion"), ending(cm("c", blocking(configMaps, "b")), "example.com/f")},
			says: "foreground deletion: it waits for configmaps/x/c", not: "cycle"},
		"a finalizer on what is in no namespace": {asked: "n", others: map[string][]metav1.PartialObjectMetadata{"nodes": {ending(object(nodes, "", "n"), "kubernetes.io/pvc-protection")}},
			says: "kubectl describe pvc n\n", not: "-n "},
		"an owner in a namespace of what is in none": {asked: "n", configs: []metav1.PartialObjectMetadata{cm("boss")},
			others: map[string][]metav1.PartialObjectMetadata{"nodes": {object(nodes, "", "n", reference(configMaps, "boss"))}},
			says:   "is in the namespace x, where it does not count", not: "apiVersion"},
		"a controller that lives": {asked: "s", configs: []metav1.PartialObjectMetadata{cm("boss"), object(configMaps, "x", "s", controlling(configMaps, "boss"))}, says: "its controller ConfigMap boss lives", not: "is to be deleted"},
		"a controller in another namespace": {asked: "s", configs: []metav1.PartialObjectMetadata{cm("boss"), object(configMaps, "y", "s", controlling(configMaps, "boss"))},
			says: "is in the namespace x, where it does not count", not: "its controller ConfigMap boss lives"},
	} {
		t.Run(name, func(t *testing.T) {
			w := clusterOf(c.configs, c.others)
			if c.unread {
				w = NewWorld("", []graph.Resource{configMaps, secrets})
				w.List(configMaps.GroupResource(), "1", c.configs)
				w.NotListed(secrets.GroupResource(), false, "not now")
			}
			a, ok := w.Why(types.UID("uid-"+c.asked), Facts{}, noon)
			text := strings.ToLower(shown(t, a))
			if !ok || !strings.Contains(text, strings.ToLower(c.says)) || strings.Contains(text, strings.ToLower(c.not)) {
				t.Errorf("want %q and not %q in\n%s", c.says, c.not, shown(t, a))
			}
		})
	}
}

// TestWhatWaitsForOneActorTwiceIsOneObject: in the count, whatever the reasons are.
func TestWhatWaitsForOneActorTwiceIsOneObject(t *testing.T) {
	w := clusterOf([]metav1.PartialObjectMetadata{ending(object(configMaps, "x", "v"), "external-attacher/a", "external-attacher/b")}, nil)
	var out strings.Builder
	if err := DrawPending(&out, w.Pending(noon), "", Style{}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "1 waits for the CSI driver's external-attacher:\n") || strings.Count(out.String(), "configmaps/x/v") != 2 {
		t.Errorf("it says\n%s", out.String())
	}
}

// TestANamespaceWaitsForWhatNeverGoes: and so does a plan of it.
func TestANamespaceWaitsForWhatNeverGoes(t *testing.T) {
	for name, c := range map[string]struct {
		left    metav1.PartialObjectMetadata
		unread  bool
		outcome Outcome
	}{
		"what goes":                 {object(configMaps, "x", "o"), false, Deleted},
		"what goes when it is held": {ending(object(configMaps, "x", "o"), "example.com/f"), false, Deleted},
		"orphaning goes":            {ending(object(configMaps, "x", "o"), "orphan"), false, Deleted},
		"orphaning that waits for what cannot be read": {ending(object(configMaps, "x", "o"), "orphan"), true, Stuck},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWorld("", []graph.Resource{configMaps, secrets, spaces})
			w.List(configMaps.GroupResource(), "1", []metav1.PartialObjectMetadata{c.left, object(configMaps, "x", "other")})
			w.List(spaces.GroupResource(), "1", []metav1.PartialObjectMetadata{object(spaces, "", "x")})
			if c.unread {
				w.NotListed(secrets.GroupResource(), false, "not now")
			} else {
				w.List(secrets.GroupResource(), "1", nil)
			}
			p := w.Plan(Deletion{Roots: []types.UID{"uid-x"}, Propagation: metav1.DeletePropagationBackground})
			items := byUID(p.Items)
			if len(p.Items) != 3 || items["uid-o"].Outcome != c.outcome || items["uid-x"].Outcome != c.outcome || items["uid-other"].Outcome != Deleted {
				t.Errorf("of %d items these are to be %q:\n%s", len(p.Items), c.outcome, drawnPlan(t, p))
			}
			if c.outcome == Stuck && items["uid-x"].Why != "waits for 1 object that is stuck" {
				t.Errorf("why: %q", items["uid-x"].Why)
			}
		})
	}
}
