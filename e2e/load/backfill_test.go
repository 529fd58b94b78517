//go:build full

package load_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/weir-dev/weir/e2e/load"
)

// TestAwaitBackFillEndsWhenAllCarryTheFinalizer: what is changed of other objects counts, too, and ends nothing.
func TestAwaitBackFillEndsWhenAllCarryTheFinalizer(t *testing.T) {
	p := start(t)
	made, err := load.Populate(t.Context(), p.Config, load.Loose(20))
	if err != nil {
		t.Fatal(err)
	}
	client, err := metadata.NewForConfig(p.Config)
	if err != nil {
		t.Fatal(err)
	}
	in := client.Resource(configmaps).Namespace(made.Namespace)
	patch := func(name, body string) error {
		_, err := in.Patch(t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
		return err
	}
	stop := load.Latencies(t.Context(), p.Config, made)
	failed := make(chan error, 1)
	s, err := load.AwaitBackFill(t.Context(), p.Config, p.Metrics, made, func() error {
		for range 2 * len(made.Dependents) {
			if err := patch(made.Owner.Name, `{"metadata":{"labels":{"a":"b"}}}`); err != nil {
				return err
			}
		}
		go func() {
			for _, o := range made.Dependents {
				if err := patch(o.Name, `{"metadata":{"finalizers":["weir.dev/propagation"]}}`); err != nil {
					failed <- err
				}
			}
			close(failed)
		}()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	for _, m := range left(t, p, made.Namespace) {
		if m.Name != made.Owner.Name && m.Name != "kube-root-ca.crt" && len(m.Finalizers) == 0 {
			t.Errorf("%s is not stamped", m.Name)
		}
	}
	if s.First.Before(s.Began) || s.Done.Before(s.First) {
		t.Errorf("began %s, the first %s, done %s", s.Began, s.First, s.Done)
	}
	answers, err := stop()
	if err != nil || len(answers) == 0 {
		t.Errorf("%d answers, %v", len(answers), err)
	}
	for _, m := range made.Dependents { // else they would terminate for good
		if err := patch(m.Name, `{"metadata":{"finalizers":null}}`); err != nil {
			t.Error(err)
		}
	}
}
