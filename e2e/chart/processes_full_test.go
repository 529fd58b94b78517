//go:build full

package chart_test

import (
	"os/exec"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What hooks run is not run here, for their pods are empty; that its arguments are flags can be
// asked.
func TestArgumentsOfEveryValueSetAreFlags(t *testing.T) {
	asked := 0
	for _, values := range valueSets(t) {
		for _, o := range manifests(t, helm(t, "template", "weir", "weir", "--kube-version", "1.36.3", "--values", values)) {
			spec, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
			if o.GetKind() == "Pod" {
				spec, _, _ = unstructured.NestedSlice(o.Object, "spec", "containers")
			}
			if len(spec) == 0 {
				continue
			}
			asked++
			args := append(texts(spec[0].(map[string]any)["args"]), "--help")
			if out, err := exec.CommandContext(t.Context(), shared.weir, args...).CombinedOutput(); err != nil {
				t.Errorf("%s: %s %s: %v\n%s", values, o.GetKind(), o.GetName(), err, out)
			}
		}
	}
	if asked < 20 {
		t.Errorf("asked about %d workloads only", asked)
	}
}
