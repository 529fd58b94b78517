//go:build full

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestManyNamesAreConfigured: the API server refuses a configuration with an expression that is too
// long, and no new policy would be in force.
func TestManyNamesAreConfigured(t *testing.T) {
	eachModeAlone(t, func(t *testing.T, w *fixture) {
		for policy := range 7 { // after the first, with 33 KB, what would be all in one expression is longer than the API server takes
			var names []string
			for i := range 64 {
				names = append(names, fmt.Sprintf("%s-%d-%d", strings.Repeat("n", 240), policy, i))
			}
			kept := fmt.Sprint("kept-", policy)
			w.make("cm " + kept)
			w.policyNamed("DeletionPolicy", fmt.Sprintf("names-%d-%s", policy, w.namespace), `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    resourceNames: [`+strings.Join(append(names[1:], kept), ", ")+`]
    HERE
  protection: {confirmation: Required}`)
			w.awaitRefusal("delete", "configmap", kept)
		}
	})
}
