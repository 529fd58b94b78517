package ask

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/archive"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// record has the archive keep a tree: each line is RESOURCE and an object.
func (w *town) record(lines string) (tree string) {
	w.Helper()
	return w.recordWith(weirNamespace, lines)
}

// recordWith is record with the key that is in a namespace, which is Weir's in one of them only.
func (w *town) recordWith(namespace, lines string) (tree string) {
	w.Helper()
	client, err := dynamic.NewForConfig(w.api.Config())
	if err != nil {
		w.Fatal(err)
	}
	of := &v1beta1.DeletedTree{Spec: v1beta1.DeletedTreeSpec{
		Root:           v1beta1.DeletedRoot{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespace: "shop", Name: "web", UID: "web"},
		DeletionTime:   ptr.To(metav1.NewTime(time.Now().Add(-time.Hour))),
		ExpirationTime: ptr.To(metav1.NewTime(time.Now().Add(100 * time.Hour))),
	}}
	err = archive.NewStore(client, namespace).Write(w.Context(), of, func(yield func(archive.Object, error) bool) {
		for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
			resource, text, _ := strings.Cut(strings.TrimSpace(line), " ")
			raw, err := yaml.YAMLToJSON([]byte(text))
			gr := schema.ParseGroupResource(resource)
			if !yield(archive.Object{Resource: gr.WithVersion("v1"), Raw: raw}, err) {
				return
			}
		}
	})
	if err != nil {
		w.Fatal(err)
	}
	return of.Name
}

// lost is a tree of which something stands in the way, and something is gone.
const lost = `
configmaps {apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: shop, uid: web}}
configmaps {apiVersion: v1, kind: ConfigMap, metadata: {name: conf-1, namespace: shop, uid: conf-1, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: web, uid: web}]}}
configmaps {apiVersion: v1, kind: ConfigMap, metadata: {name: conf-2, namespace: shop, uid: conf-2, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: web, uid: web}]}}
secrets {apiVersion: v1, kind: Secret, metadata: {name: token, namespace: shop, uid: token, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: conf-1, uid: conf-1}, {apiVersion: v1, kind: ConfigMap, name: never, uid: never}]}, data: {key: c2VjcmV0}}
configmaps {apiVersion: v1, kind: ConfigMap, metadata: {name: leaf, namespace: shop, uid: leaf}, data: {a: recorded}}
configmaps {apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt, namespace: shop, uid: ca}}
widgets.example.com {apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: shop, uid: w}}
`

// mallorys is what a stranger would have an administrator make.
const mallorys = `
rolebindings.rbac.authorization.k8s.io {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: mine, namespace: shop, uid: mine}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}, subjects: [{kind: User, name: mallory}]}
`

func TestATreeIsRestored(t *testing.T) {
	w := newTown(t)
	tree := w.record(lost)
	s := w.run("deleted", "--since", "2h", "-n", "shop")
	want := "TREE          OBJECT               RECORDED   DELETED  EXPIRES\n" + tree + "  configmaps/shop/web  7 objects  60m ago  in 4d3h\n"
	if s.out != want {
		t.Errorf("it says\n%swant\n%s", s.out, want)
	}
	if s := w.run("deleted", "--since", "1m"); s.out != "Nothing that was deleted is kept. A DeletionPolicy with archive says what is.\n" {
		t.Errorf("it says %q", s.out)
	}
	before := len(w.written)
	s = w.run("restore", tree, "--plan")
	want = `✗ configmaps/leaf: another object has its name, made at 0001-01-01T00:00:00Z, and is kept; --diff shows both, --replace puts this one in its place
✗ widgets.example.com/w: the cluster does not serve its kind: install what defines it, and restore again
+ configmaps/web
  + configmaps/conf-1
    ~ secrets/token: without its reference to ConfigMap never: it is gone
  + configmaps/conf-2
= configmaps/kube-root-ca.crt: Kubernetes makes it in each namespace

Plan: 4 objects are made again, 1 of them without a reference to an owner, 1 is left out on purpose, 1 is not made: another has its name, 1 cannot be made as things are.
`
	if diff := cmp.Diff(want, s.out); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
	s = w.run("restore", tree, "--diff")
	for _, has := range []string{"+  key: '***'\n", "+++ create/configmaps/shop/web\n", "@@ -0,0 +1,7 @@\n", "+  a: recorded\n", "+++ blocked/widgets.example.com/shop/w\n"} {
		if !strings.Contains(s.out, has) {
			t.Errorf("there is no %q in\n%s", has, s.out)
		}
	}
	if strings.Contains(s.out, "c2VjcmV0") {
		t.Errorf("it shows what is in a Secret:\n%s", s.out)
	}
	for _, r := range w.written[before:] {
		if !strings.Contains(r, "selfsubjectaccessreviews") {
			t.Errorf("it has written: %s", r)
		}
	}
	s = w.run("restore", tree)
	if want := "restored configmaps/shop/web\nrestored configmaps/shop/conf-1\nrestored configmaps/shop/conf-2\nrestored secrets/shop/token\n"; s.failed != nil || !cmp.Equal(sorted(s.out), sorted(want)) {
		t.Errorf("%v; it says\n%swant\n%s", s.failed, s.out, want)
	}
	if !strings.Contains(s.err, "not restored: configmaps/shop/leaf: another object has its name") {
		t.Errorf("it does not say what was left out:\n%s", s.err)
	}
	if s := w.run("restore", tree, "--plan"); !strings.Contains(s.out, "Plan: 4 are there,") {
		t.Errorf("after all was done:\n%s", s.out)
	}
	if s := w.run("restore", tree, "--replace", "--only", "configmap/leaf"); s.out != "replaced configmaps/shop/leaf\n" {
		t.Errorf("%v; it says %q", s.failed, s.out)
	}
	if s := w.run("purge", tree); s.out != "purged "+tree+": 7 objects can no longer be restored\n" {
		t.Errorf("%v; it says %q", s.failed, s.out)
	}
	w.run("restore", tree).mustFail(t, fmt.Sprintf("there is no DeletedTree %q: it has expired, was purged, or never was", tree))
}

// TestOnlyTheAPIServerSlowsARestoreDown: by its defaults a client sends five requests a second.
func TestOnlyTheAPIServerSlowsARestoreDown(t *testing.T) {
	w := newTown(t)
	lines := ""
	for i := range 100 {
		lines += fmt.Sprintf("configmaps {apiVersion: v1, kind: ConfigMap, metadata: {name: many-%[1]d, namespace: shop, uid: many-%[1]d}}\n", i)
	}
	tree := w.record(lines)
	began := time.Now()
	if s := w.run("restore", tree); s.failed != nil || strings.Count(s.out, "restored ") != 100 {
		t.Errorf("%v; it says\n%s%s", s.failed, s.out, s.err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

func sorted(lines string) []string { return slices.Sorted(strings.Lines(lines)) }

// TestAnArchiveThatIsWrongRestoresNothing: and says in what it is wrong.
func TestAnArchiveThatIsWrongRestoresNothing(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(w *town, tree string)
		says  string
	}{
		"a chunk is gone": {func(w *town, tree string) { w.api.Remove("archivechunks.weir.dev/" + tree + "-00000") }, "nothing was restored: read ArchiveChunk"},
		"another key": {func(w *town, _ string) {
			w.api.Put("secrets", `{apiVersion: v1, kind: Secret, metadata: {name: weir-archive-key, namespace: weir-system}, data: {key: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=}}`)
		}, "the archive's key does not unwrap the key of the tree: it was wrapped by another, or altered"},
		"a key that may not be read": {func(w *town, _ string) { w.refuse("/secrets/weir-archive-key", 403, "Forbidden", "not you") }, "not you; to restore, you need the right to get it"},
		"a chunk that a stranger sealed": {func(w *town, tree string) {
			chunk := w.api.Get("archivechunks.weir.dev/" + w.recordWith("mallory", mallorys) + "-00000")
			w.api.Put("archivechunks", fmt.Sprintf("{apiVersion: weir.dev/v1beta1, kind: ArchiveChunk, metadata: {name: %[1]s-00000}, "+
				"spec: {tree: %[1]s, sequence: 0, last: true, sealed: %[2]s}}", tree, chunk["spec"].(map[string]any)["sealed"]))
		}, "does not open: it was sealed with another key"},
		"no archive": {func(w *town, _ string) { w.refuseAll("deletedtrees", 404) }, "the cluster keeps nothing of what is deleted: install Weir, and set archive in a DeletionPolicy"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(t)
			tree := w.record(lost)
			c.spoil(w, tree)
			before := len(w.written)
			w.run("restore", tree).mustFail(t, c.says)
			if len(w.written) > before {
				t.Errorf("it has written %q", w.written[before:])
			}
		})
	}
	w := newTown(t)
	w.record(lost)
	forged := w.recordWith("mallory", mallorys)
	w.run("restore", forged).mustFail(t, "the archive's key does not unwrap the key of the tree")
	w.refuseAll("deletedtrees", 404)
	w.run("deleted").mustFail(t, "the cluster keeps nothing of what is deleted")
}

// refuseAll has all requests about a kind be refused.
func (w *town) refuseAll(kind string, code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = func(r apitest.Request) *apitest.Reply {
		if strings.Contains(r.Path, "/"+kind) {
			return apitest.Refuse(code, map[int]string{403: "Forbidden", 404: "NotFound"}[code], "not here")
		}
		return nil
	}
}

// TestARestoreThatNeedsAWordDoesNothingWithoutIt: what the user may not make, and new volumes.
func TestARestoreThatNeedsAWordDoesNothingWithoutIt(t *testing.T) {
	w := newTown(t)
	w.core = append(w.core, metav1.APIResource{Name: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", Namespaced: true, Verbs: metav1.Verbs{"get", "list", "watch", "delete", "create"}})
	tree := w.record(lost + `persistentvolumeclaims {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop, uid: data}, spec: {volumeName: pv}}`)
	w.run("restore", tree).mustFail(t, "nothing was restored: a new, empty volume would be made for persistentvolumeclaims/shop/data: --plan says why, --fresh-volumes goes on")
	w.mu.Lock()
	w.answer = func(r apitest.Request) *apitest.Reply {
		if strings.Contains(r.Path, "selfsubject") {
			return &apitest.Reply{Code: 201, Body: map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
				"status": map[string]any{"allowed": !strings.Contains(r.Body, `"resource":"secrets"`)}}}
		}
		return nil
	}
	w.mu.Unlock()
	w.run("restore", tree, "--fresh-volumes").mustFail(t, "nothing was restored: you may not make secrets/shop/token: have somebody restore it who may, or go on without with --partial")
	if w.api.Get("configmaps/shop/web") != nil {
		t.Error("it has made something")
	}
	s := w.run("restore", tree, "--fresh-volumes", "--partial")
	s.mustFail(t, "1 step failed, as told above: the same command does what is missing")
	if !strings.Contains(s.err, "failed: secrets/shop/token: you may not create it") || !strings.Contains(s.out, "restored persistentvolumeclaims/shop/data") {
		t.Errorf("it says\n%s%s", s.out, s.err)
	}
	w.run("restore", tree, "--only", "secrets/none").mustFail(t, "--only secrets/none: the tree has no other object of that name")
}
