//go:build full

package e2e

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/helm"
	"github.com/weir-dev/weir/e2e/plane"
)

var instances = flag.Int("brake.instances", 600, "how many instances a definition has that helm uninstall deletes")

// TestBrakeHoldsWhatHelmUninstallTakesWithIt: the chart of an operator has the definition among its
// templates, so its uninstall deletes that, and all instances with it. What these own is held, in
// both modes, and goes when a person decides.
func TestBrakeHoldsWhatHelmUninstallTakesWithIt(t *testing.T) {
	t.Parallel()
	for name, holdable := range map[string]func(*testing.T) (*fixture, *apiextensionsv1.CustomResourceDefinition){
		"replace": func(t *testing.T) (*fixture, *apiextensionsv1.CustomResourceDefinition) {
			w, crd := newHoldable(t)
			w.startWeir()
			return w, crd
		},
		"companion": func(t *testing.T) (*fixture, *apiextensionsv1.CustomResourceDefinition) {
			w, _, crd := newHoldableCompanion(t, plane.Collectors)
			return w, crd
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, crd := holdable(t)
			w.helm("install", "operator", w.chartWith(crd), "--take-ownership")
			owned := numbered("owned", *instances)
			w.makePairs("widget", numbered("widget", *instances), owned)
			w.make(`
				cm boss
				cm leaf owners=(boss)
			`)
			w.helm("uninstall", "operator")

			held := w.awaitCounted(crd.Name, owned)
			w.mustBeHeld(held, owned, "DefinitionGone")
			w.delete("boss", background)
			w.awaitGoneIn(collectorBegins, "leaf")
			w.proceed(crd.Name, status(held, "digest"))
			w.awaitGone(owned...)
			w.awaitNotHeld(crd.Name)
		})
	}
}

// chartWith is a chart that has a definition among its templates.
func (w *fixture) chartWith(crd *apiextensionsv1.CustomResourceDefinition) string {
	w.Helper()
	dir := w.TempDir()
	template := crd.DeepCopy()
	template.TypeMeta = metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"}
	text, err := json.Marshal(template)
	if err != nil {
		w.Fatal(err)
	}
	for name, text := range map[string][]byte{"Chart.yaml": []byte("apiVersion: v2\nname: operator\nversion: 1.0.0\n"), "templates/definition.yaml": text} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			w.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			w.Fatal(err)
		}
	}
	return dir
}

// helm runs Helm as the cluster's administrator in the fixture's namespace.
func (w *fixture) helm(args ...string) {
	w.Helper()
	path, err := helm.Build(w.Context(), "../charts")
	if err != nil {
		w.Fatal(err)
	}
	cmd := helm.Command(w.Context(), path, ".", w.TempDir(), w.plane.Kubeconfig, w.namespace, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("helm %v: %v\n%s", args, err, out)
	}
}
