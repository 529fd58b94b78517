package controller

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"

	"github.com/weir-dev/weir/controller/graph"
)

func TestBlockedWaveIsToldOnceForEachReason(t *testing.T) {
	events := record.NewFakeRecorder(10)
	r := newReporter(events, events, func(schema.GroupResource) schema.GroupVersionKind {
		return schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	})
	shop, other := graph.Ref{Kind: namespaces, Name: "shop", UID: "1"}, graph.Ref{Kind: namespaces, Name: "shop", UID: "2"}
	r.blocked(shop, "waiting for 2 pods")
	r.blocked(shop, "waiting for 2 pods")
	r.blocked(shop, "waiting for 1 pods")
	r.blocked(other, "waiting for 1 pods") // the namespace of the same name that came later
	close(events.Events)
	var told []string
	for e := range events.Events {
		told = append(told, e)
	}
	if len(told) != 3 || told[0] != "Warning WaveBlocked waiting for 2 pods" {
		t.Errorf("told: %q", told)
	}
}
