package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestKindThatCannotBeListedHoldsUpOnlyOrphaning: a CRD whose conversion webhook
// does not answer has objects that no client can read. Any of them could depend on an
// owner, and would be collected if that owner went with its orphans not released.
func TestKindThatCannotBeListedHoldsUpOnlyOrphaning(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	crd := w.definition("Widget", apiextensionsv1.NamespaceScoped, "v1")
	w.define(crd)
	w.make(`
		widget readable
		widget unreadable
		cm     of-readable  owners=(readable)
	`)
	w.breakConversion(crd.Name)
	unreadable := w.reference("unreadable")
	unreadable.APIVersion = crd.Spec.Group + "/v2"
	w.create("cm", "of-unreadable", []metav1.OwnerReference{unreadable})
	w.startWeir()
	delete(w.kinds, "widget")

	w.holdsUpOnlyOrphaning(crd.Name)
	// The first version needs no conversion: that owner is found.
	w.alive("of-readable", "of-unreadable")
	w.awaitEvent("of-unreadable", "OwnerRefUnresolvable")
	other := w.beside()
	other.make("cm held finalizers=(example.com/hold)")
	other.drop()
	w.mustSay(w.mustAsk("why", "namespace", other.namespace), "Objects of "+crd.Name+" cannot be listed, so it is not known whether some are left: conversion webhook for ",
		"Who has to act: whoever runs the conversion webhook of "+crd.Spec.Group)

	if err := w.crds().Delete(t.Context(), crd.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.awaitGone("orphan")
	w.alive("of-orphan")
	other.unfinalize("held")
}

// breakConversion adds a version to a CRD and has objects converted to it by a
// webhook that is not there.
func (w *fixture) breakConversion(name string) {
	w.Helper()
	port, err := plane.FreePort()
	if err != nil {
		w.Fatal(err)
	}
	w.until("the CRD has a second version", func(ctx context.Context) (bool, error) {
		crd, err := w.crds().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		second := crd.Spec.Versions[0]
		second.Name, second.Storage = "v2", false
		crd.Spec.Versions = append(crd.Spec.Versions, second)
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new(fmt.Sprintf("https://127.0.0.1:%d/convert", port))},
				ConversionReviewVersions: []string{"v1"},
			},
		}
		crd.Spec.PreserveUnknownFields = false
		_, err = w.crds().Update(ctx, crd, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
	second := w.kinds["widget"].gvr()
	second.Version = "v2"
	w.until("objects cannot be read any more", func(ctx context.Context) (bool, error) {
		_, err := w.dynamic.Resource(second).Namespace(w.namespace).List(ctx, metav1.ListOptions{})
		return err != nil && strings.Contains(err.Error(), "conversion webhook"), nil
	})
}

// awaitLog waits until weir has said something.
func (w *fixture) awaitLog(what string, is func(weir.Entry) bool) {
	w.Helper()
	w.until("weir says: "+what, func(context.Context) (bool, error) {
		entries, err := w.weir.Entries()
		if err != nil {
			return false, err
		}
		for _, e := range entries {
			if is(e) {
				return true, nil
			}
		}
		return false, nil
	})
}

// holdsUpOnlyOrphaning makes sure that a kind which is never listed does not stop
// cascades, and that the user can learn what orphaning waits for.
func (w *fixture) holdsUpOnlyOrphaning(kind string) {
	w.Helper()
	w.onlyOrphanStays()
	w.awaitLog("orphaning waits", func(e weir.Entry) bool {
		return strings.HasSuffix(e.Object, "/orphan") && strings.Contains(e.Why, "not listed yet: "+kind)
	})
	m, err := w.weir.Metrics(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	if n := m.Sum("weir_graph_kinds", "state", "failing"); n != 1 {
		w.Errorf("%.0f kinds are failing, want 1", n)
	}
}

const aggregated = "gadgets.example.com"

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// aggregate registers an API of gadgets that is served on a port of this machine.
func (w *fixture) aggregate(port int) { w.aggregateAs(aggregated, "v1", port) }

// aggregateAs registers a version of an API group that is served on a port of this machine.
func (w *fixture) aggregateAs(group, version string, port int) {
	w.Helper()
	_, err := w.typed.CoreV1().Services(w.namespace).Create(w.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "gadgets"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	api := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": version + "." + group},
		"spec": map[string]any{
			"group": group, "version": version, "groupPriorityMinimum": int64(1000), "versionPriority": int64(10),
			"insecureSkipTLSVerify": true,
			"service":               map[string]any{"namespace": w.namespace, "name": "gadgets", "port": int64(port)},
		},
	}}
	if _, err := w.dynamic.Resource(apiServices).Create(w.Context(), api, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// answers is a handler that always gives the same JSON.
func answers(body string) http.HandlerFunc {
	return func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		fmt.Fprint(out, body)
	}
}

// serveHanging is an API server that has one kind and answers nothing about it.
func (w *fixture) serveHanging() int {
	w.Helper()
	list := `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"` + aggregated + `/v1","resources":[
		{"name":"gadgets","singularName":"gadget","namespaced":true,"kind":"Gadget","verbs":["get","list","watch","delete","patch"]}]}`
	group := `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"` + aggregated + `","versions":[{"groupVersion":"` + aggregated + `/v1","version":"v1"}]}]}`
	mux := http.NewServeMux()
	mux.HandleFunc("/apis", answers(group))
	mux.HandleFunc("/apis/"+aggregated+"/v1", answers(list))
	done := make(chan struct{})
	mux.HandleFunc("/", func(_ http.ResponseWriter, in *http.Request) {
		select {
		case <-in.Context().Done():
		case <-done:
		}
	})
	server := httptest.NewTLSServer(mux)
	w.Cleanup(func() { close(done); server.Close() })
	return server.Listener.Addr().(*net.TCPAddr).Port
}
