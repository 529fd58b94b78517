//go:build full

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
)

func TestEmptyNamespaceIsGoneAtOnceAndCheaply(t *testing.T) {
	t.Parallel()
	// Other tests have webhooks, which are waited for.
	w := newCluster(t, plane.Options{Controllers: plane.WithoutCollectors})
	w.startWeir()
	w.until("the namespace has what each namespace has", func(ctx context.Context) (bool, error) {
		_, err := w.typed.CoreV1().ConfigMaps(w.namespace).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return err == nil, nil
	})
	w.make("cm canary") // weir has seen what is there when it has seen this
	w.delete("canary", none)
	w.settle()
	clear(w.made)
	began := time.Now()
	w.awaitDropped(w.drop())
	if took := time.Since(began); took > 10*time.Second { // alone on a machine: a tenth of a second
		t.Errorf("took %s", took)
	}
	w.settle()
	requests := slices.DeleteFunc(w.audit(weirUser), func(r request) bool {
		return strings.HasPrefix(r.Object.Name, "canary")
	})
	// A pass reads the namespace, may write its conditions, and lists Events, which are not followed.
	// How many passes there are depends on how close together its objects go. All else is asked for
	// once.
	sent := map[string]int{}
	for _, r := range requests {
		if r.Object.Resource == "namespaces" || r.Object.Resource == "events" {
			continue
		}
		what := fmt.Sprint(r.Verb, " ", r.Object.Resource, " ", r.Object.Name)
		if sent[what]++; sent[what] > 1 {
			t.Errorf("%s: %d times", what, sent[what])
		}
	}
	if n := len(requests); n == 0 || n >= 60 { // the reference sends 60
		t.Errorf("%d requests, want less than 60: %v", n, requests)
	}
}

func TestDrainingGoesOnWhereAKilledWeirLeftIt(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{Controllers: plane.WithoutCollectors})
	w.startWeir()
	var names []string
	for i := range 300 {
		name := fmt.Sprintf("content-%d", i)
		w.create("cm", name, nil)
		names = append(names, name)
	}
	uid := w.drop()
	w.until("some of it is gone", func(ctx context.Context) (bool, error) {
		left, err := w.left(ctx, names)
		return len(left) < len(names), err
	})
	w.again(w.weir)
	w.awaitDropped(uid)
	w.awaitGone(names...)
}
