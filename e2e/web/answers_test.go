//go:build web && full

package web_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// gate has plans wait, in the order in which the page asks for them, while gated is true.
const gate = `
	window.gates = [];
	const plain = window.fetch;
	window.fetch = async (what, ...more) => {
		const of = new URLSearchParams(String(what).split("?")[1]).get("cascade");
		if (window.gated && of) await new Promise((go) => gates.push({of, go}));
		return plain(what, ...more);
	};`

// TestAPlanIsShownBelowItsButton: what is asked for while an answer is on its way is not what that
// answer is about.
func TestAPlanIsShownBelowItsButton(t *testing.T) {
	w := newFixture(t)
	boss := w.make("boss", nil)
	w.make("leaf", owners{boss})
	p := open(t, serve(t, shared.plane.Kubeconfig).url+w.place("boss", "?cascade=orphan"), gate)
	p.see("1 is kept and loses a reference")
	eval[bool](p, "window.gated = true")
	w.make("newcomer", owners{boss}) // so that it reads the plan again
	p.until("gates.length === 1")
	p.do(chromedp.Click(chromedp.CSS("button[data-choice=background]")))
	p.until("!location.hash.includes('cascade')")
	eval[bool](p, "gates.shift().go() ?? true")
	p.until("gates[0]?.of === 'background'") // the answer about orphan has come before that
	pressed := eval[string](p, "document.querySelector('button[data-choice][aria-pressed=true]').dataset.choice")
	if summary := p.text("#summary"); pressed != "orphan" {
		t.Errorf("%s is pressed above %q", pressed, summary)
	}
	eval[bool](p, "(window.gated = false, gates.shift().go(), true)")
	p.until("document.querySelector('button[data-choice=background]').getAttribute('aria-pressed') === 'true'")
	p.see("3 objects are deleted")
}

// TestAListWhosePlanIsGoneTakesAnother: the server keeps a few plans, for all the pages that are
// open.
func TestAListWhosePlanIsGoneTakesAnother(t *testing.T) {
	w := newFixture(t)
	boss := w.make("boss", nil)
	w.make("below", owners{w.make("leaf", owners{boss})})
	const others = 5
	for n := range others {
		w.make(fmt.Sprint("other-", n), nil)
	}
	p := open(t, serve(t, shared.plane.Kubeconfig).url+w.place("boss", ""))
	p.see("configmaps/leaf")
	for n := range others {
		eval[int](p, fmt.Sprintf("fetch('api/plan?kind=configmaps&namespace=%s&name=other-%d&cascade=background').then((a) => a.status)", w.namespace, n))
	}
	p.expectLost() // a 410 is an error to the browser
	p.do(chromedp.Click(chromedp.CSS(".row:nth-child(2) .fold")))
	p.see("configmaps/below")
}

// TestWhyItIsStillThereIsAskedAgain: what tells why changes without a change of any object that the
// page follows.
func TestWhyItIsStillThereIsAskedAgain(t *testing.T) {
	w := newFixture(t)
	w.hold("stuck")
	stuck, err := shared.client.Resource(configMaps).Namespace(w.namespace).Get(t.Context(), "stuck", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, serve(t, shared.plane.Kubeconfig).url+w.place("stuck", ""))
	p.see("Why it is still there")
	event := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Event", "metadata": map[string]any{"name": "held"}, "reason": "DeletionHeld", "message": "a person has to decide",
		"source": map[string]any{"component": "weir"}, "lastTimestamp": metav1.Now().UTC().Format("2006-01-02T15:04:05Z"),
		"involvedObject": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": w.namespace, "name": "stuck", "uid": string(stuck.GetUID())},
	}}
	if _, err := shared.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace(w.namespace).Create(t.Context(), event, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.see("a person has to decide")
}
