package chaos

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/fake"
)

// ends is a cascade as it must end: those that stay, with the owners that they have then.
func ends(c *cascade) map[string]*metav1.PartialObjectMetadata {
	there := map[string]*metav1.PartialObjectMetadata{}
	for i, o := range c.objects {
		o.uid = types.UID(fmt.Sprint(i))
	}
	for _, o := range c.objects {
		if o.goes {
			continue
		}
		m := &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: o.kind},
			ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: o.name, UID: o.uid},
		}
		for _, owner := range o.kept {
			m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{UID: owner.uid})
		}
		there[o.namespace+"/"+o.name] = m
	}
	return there
}

// serving is an API server of these objects.
func serving(t *testing.T, there map[string]*metav1.PartialObjectMetadata) metadata.Interface {
	t.Helper()
	var listed []runtime.Object
	for _, m := range there {
		listed = append(listed, m)
	}
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewSimpleMetadataClient(scheme, listed...)
}

func TestLedgerAcceptsNothingButTheRightEnd(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(map[string]*metav1.PartialObjectMetadata)
		want  []string
	}{
		"as it must": {spoil: func(map[string]*metav1.PartialObjectMetadata) {}},
		"one without an owner is gone": {
			spoil: func(there map[string]*metav1.PartialObjectMetadata) { delete(there, "c-flat-background/unowned-0") },
			want:  []string{"ConfigMap c-flat-background/unowned-0 was deleted"},
		},
		"one with another owner is gone": {
			spoil: func(there map[string]*metav1.PartialObjectMetadata) { delete(there, "c-flat-foreground/shared-7") },
			want:  []string{"Secret c-flat-foreground/shared-7 was deleted"},
		},
		"one that was let go is gone": {
			spoil: func(there map[string]*metav1.PartialObjectMetadata) { delete(there, "c-tree-orphan/leaf-1") },
			want:  []string{"ConfigMap c-tree-orphan/leaf-1 was deleted"},
		},
		"one has the name and another uid": {
			spoil: func(there map[string]*metav1.PartialObjectMetadata) { there["c-tree-orphan/leaf-1"].UID = "another" },
			want:  []string{"ConfigMap c-tree-orphan/leaf-1 was deleted"},
		},
		"one is being deleted": {
			spoil: func(there map[string]*metav1.PartialObjectMetadata) {
				there["c-tree-orphan/leaf-1"].DeletionTimestamp = new(metav1.Now())
			},
			want: []string{"ConfigMap c-tree-orphan/leaf-1 is being deleted", "ConfigMap c-tree-orphan/leaf-1 was deleted"},
		},
		"one is left": {
			spoil: func(there map[string]*metav1.PartialObjectMetadata) {
				there["left"] = there["c-flat-background/unowned-0"].DeepCopy()
				there["left"].Name, there["left"].UID = "boss", "0"
			},
			want: []string{"ConfigMap c-flat-background/boss is still there"},
		},
		"a finalizer is left": {
			spoil: func(there map[string]*metav1.PartialObjectMetadata) {
				there["c-flat-orphan/leaf-1"].Finalizers = []string{"orphan"}
			},
			want: []string{"ConfigMap c-flat-orphan/leaf-1 has finalizers [orphan]"},
		},
		"an owner is left": {
			spoil: func(there map[string]*metav1.PartialObjectMetadata) {
				there["c-flat-orphan/leaf-1"].OwnerReferences = []metav1.OwnerReference{{UID: "0"}}
			},
			want: []string{"ConfigMap c-flat-orphan/leaf-1 has 1 owners, and not the 0 that it should"},
		},
		"an owner is lost": {
			spoil: func(there map[string]*metav1.PartialObjectMetadata) {
				there["c-tree-orphan/leaf-1"].OwnerReferences = nil
			},
			want: []string{"ConfigMap c-tree-orphan/leaf-1 has 0 owners, and not the 1 that it should"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCascade("c", 600)
			there := ends(c)
			test.spoil(there)
			l := newLedger(serving(t, there), c)
			for kind := range kinds {
				if _, err := l.list(t.Context(), kind); err != nil {
					t.Fatal(err)
				}
			}
			have, err := l.verdict(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, have); diff != "" {
				t.Errorf("wrong (-want +have):\n%s", diff)
			}
			if left, _ := l.left(); left > 0 && test.want == nil {
				t.Errorf("%d are left to be done, among them %s", left, l.some())
			}
		})
	}
}

// What comes back, or was deleted and is made again under its name, was deleted all the same.
func TestLedgerForgetsNoDeletion(t *testing.T) {
	c := newCascade("c", 600)
	there := ends(c)
	l := newLedger(nil, c)
	i := slices.IndexFunc(c.objects, func(o *object) bool { return !o.goes })
	m := there[c.objects[i].namespace+"/"+c.objects[i].name]
	dying := m.DeepCopy()
	dying.DeletionTimestamp = new(metav1.Now())
	l.see(dying)
	l.see(m)
	if len(l.wrong) != 1 {
		t.Errorf("wrong: %v", l.wrong)
	}
}
