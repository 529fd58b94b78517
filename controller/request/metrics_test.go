package request

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/internal/testkit/fixture"
)

func TestDeletesAreCountedByKindAndResult(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := newMetrics(registry)
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	m.deleted(jobs, OutcomeOf(nil))
	m.deleted(jobs, OutcomeOf(nil))
	m.deleted(jobs, OutcomeOf(apierrors.NewForbidden(jobs, "a", errors.New("no"))))
	m.deleted(fixture.ConfigMaps, OutcomeOf(apierrors.NewNotFound(fixture.ConfigMaps, "a")))
	want := map[string]float64{"batch jobs ok": 2, "batch jobs refused": 1, "configmaps gone": 1}
	if diff := cmp.Diff(want, fixture.Counts(t, registry, "weir_deletes_total")); diff != "" {
		t.Errorf("deletes (-want +have):\n%s", diff)
	}
}
