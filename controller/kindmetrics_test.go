package controller

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestDeletesAreCountedByKindAndResult(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := newMetrics(registry)
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	m.deleted(jobs, outcomeOf(nil))
	m.deleted(jobs, outcomeOf(nil))
	m.deleted(jobs, outcomeOf(apierrors.NewForbidden(jobs, "a", errors.New("no"))))
	m.deleted(configMapKind, outcomeOf(apierrors.NewNotFound(configMapKind, "a")))
	want := map[string]float64{"batch jobs ok": 2, "batch jobs refused": 1, "configmaps gone": 1}
	if diff := cmp.Diff(want, counts(t, registry, "weir_deletes_total")); diff != "" {
		t.Errorf("deletes (-want +have):\n%s", diff)
	}
}

// TestKindsThatComeAndGoDoNotGrowMetricsForEver: counters stay when a kind is gone.
func TestKindsThatComeAndGoDoNotGrowMetricsForEver(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := newMetrics(registry)
	const n = mostKindLabels + 500
	for range 2 {
		for i := range n {
			m.deleted(schema.GroupResource{Group: fmt.Sprint("g", i, ".example.com"), Resource: "widgets"}, ok)
		}
	}
	have := counts(t, registry, "weir_deletes_total")
	if len(have) != mostKindLabels+1 || have["other ok"] != 2*(n-mostKindLabels) {
		t.Errorf("%d series, %.0f deletes of other kinds", len(have), have["other ok"])
	}
}
