//go:build full

package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestWhatIsLeftOfANamespaceThatIsGoneIsTold: the API server refuses what has to be asked about it,
// and calls that not found. With a namespace of the name the deletion goes on.
func TestWhatIsLeftOfANamespaceThatIsGoneIsTold(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	w.startWeir()
	ghost := w.beside()
	ghost.make(`
		cm boss
		cm leaf owners=(boss!block) finalizers=(example.com/hold)
	`)
	ghost.delete("boss", foreground)
	ghost.awaitTerminating("leaf")
	if err := w.plane.Erase(t.Context(), "/registry/namespaces/"+ghost.namespace); err != nil {
		t.Fatal(err)
	}
	says := "namespace " + ghost.namespace + " does not exist, so the API server accepts no request about it"
	w.until("why says so", func(context.Context) (bool, error) {
		out, _, _ := ghost.ask(w.plane.Kubeconfig, "why", "configmap/leaf", "-n", ghost.namespace)
		return strings.Contains(out, says) && strings.Contains(out, "kubectl create namespace "+ghost.namespace), nil
	})
	w.mustKubectl("create", "namespace", ghost.namespace)
	ghost.unfinalize("leaf")
	ghost.awaitGone("leaf", "boss")
}
