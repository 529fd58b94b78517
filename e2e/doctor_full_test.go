//go:build full

package e2e

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// doctor runs weir doctor.
func (w *fixture) doctor(kubeconfig string, flags ...string) (out string, code int) {
	w.Helper()
	return w.command(append([]string{"doctor", "--kubeconfig", kubeconfig, "-n", metav1.NamespaceSystem}, flags...)...)
}

// mustFind wants lines of a doctor that begin with a grade, and have what it is about, and all
// words.
func (w *fixture) mustFind(out string, want ...string) {
	w.Helper()
	for _, line := range want {
		grade, words, _ := strings.Cut(line, " ")
		found := false
		for have := range strings.Lines(out) {
			all := strings.HasPrefix(have, grade+" ")
			for word := range strings.SplitSeq(words, "…") {
				all = all && strings.Contains(have, strings.TrimSpace(word))
			}
			found = found || all
		}
		if !found {
			w.Errorf("%q is not in\n%s", line, out)
		}
	}
}
