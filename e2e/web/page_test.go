//go:build web

package web_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/e2e/plane"
)

var (
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	roles      = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	policies   = schema.GroupVersionResource{Group: "weir.dev", Version: "v1beta1", Resource: "deletionpolicies"}
)

// fixture is a namespace of a test's own.
type fixture struct {
	*testing.T
	namespace string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	ns.SetGenerateName("web-")
	made, err := shared.client.Resource(namespaces).Create(t.Context(), ns, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{t, made.GetName()}
}

// make makes a ConfigMap, with owners and finalizers.
func (w *fixture) make(name string, owners []*unstructured.Unstructured, finalizers ...string) *unstructured.Unstructured {
	w.Helper()
	cm := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	cm.SetName(name)
	cm.SetFinalizers(finalizers)
	var refs []metav1.OwnerReference
	for _, o := range owners {
		refs = append(refs, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: o.GetName(), UID: o.GetUID()})
	}
	cm.SetOwnerReferences(refs)
	made, err := shared.client.Resource(configMaps).Namespace(w.namespace).Create(w.Context(), cm, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return made
}

func (w *fixture) delete(name string, propagation metav1.DeletionPropagation) {
	w.Helper()
	err := shared.client.Resource(configMaps).Namespace(w.namespace).Delete(w.Context(), name, metav1.DeleteOptions{PropagationPolicy: &propagation})
	if err != nil {
		w.Fatal(err)
	}
}

func (w *fixture) place(name, more string) string {
	return fmt.Sprintf("#/object/configmaps/%s/%s%s", w.namespace, name, more)
}

type owners = []*unstructured.Unstructured

// TestViews opens each view: it says what is there, has no fault that axe finds, light or dark, and
// fits a narrow screen.
func TestViews(t *testing.T) {
	w := newFixture(t)
	boss := w.make("boss", nil)
	other := w.make("other", nil)
	leaf := w.make("leaf", owners{boss})
	w.make("below", owners{leaf})
	w.make("shared", owners{boss, other})
	w.make("held", owners{boss}, "example.com/hold")
	stuck := w.make("stuck", nil, "example.com/hold")
	w.delete(stuck.GetName(), metav1.DeletePropagationBackground)
	gone := stuck.DeepCopy()
	gone.SetName("never")
	gone.SetUID(types.UID("never-was"))
	w.make("stray", owners{gone})
	t.Setenv("KUBECONFIG", shared.plane.Kubeconfig) // commands in pictures name no file of a machine
	page := open(t, serve(t, "").url)
	for _, v := range []struct {
		name, hash string
		says       []string
	}{
		{"overview", "#/", []string{"Perhaps: look at what is marked below.", w.namespace, "1 waits for the component behind the finalizer example.com/hold", "configmaps/" + w.namespace + "/stray", "0 Held for a decision", "Namespaces"}},
		{"pending", "#/pending", []string{"configmaps/" + w.namespace + "/stuck", "the finalizer example.com/hold holds it"}},
		{"orphans", "#/orphans", []string{"A garbage collector deletes these", "configmaps/" + w.namespace + "/stray"}},
		{"deleted", "#/deleted", []string{"Nothing that was deleted is kept."}},
		{"object", w.place("boss", ""), []string{"It is not being deleted.", "Nothing owns it.", "kubectl delete configmaps boss -n " + w.namespace, "is kept and loses a reference", "configmaps/leaf"}},
		{"stuck", w.place("stuck", ""), []string{"It is being deleted", "Who has to act: the component behind the finalizer example.com/hold"}},
		{"owners", w.place("below", ""), []string{"Owners", "configmaps/" + w.namespace + "/boss"}},
		{"namespace", "#/object/namespaces/-/" + w.namespace, []string{"are deleted", "configmaps/" + w.namespace + "/boss"}},
		{"nobody", w.place("nobody", ""), []string{`configmaps "nobody" not found`, "and nothing is recorded of its deletion"}},
		{"malformed", "#/object/%E0%A4%A", []string{"There is no such view"}},
		{"nowhere", "#/nowhere", []string{"There is no such view"}},
	} {
		t.Run(v.name, func(t *testing.T) {
			p := &tab{T: t, Context: page.Context} // what fails is this part's
			if v.name == "nobody" {
				page.expectLost() // a refused question is an error to the browser
			}
			p.hash(v.hash)
			for _, text := range v.says {
				p.see(text)
			}
			p.accessible()
			p.fits()
			p.picture(v.name)
		})
	}
}

// TestTheFirstViewComesSoon: it waits for no answer but the shortest. A view that is not there
// after a second says what it waits for.
func TestTheFirstViewComesSoon(t *testing.T) {
	w := newFixture(t)
	w.make("boss", nil)
	p := open(t, serve(t, shared.plane.Kubeconfig).url, `
		new MutationObserver((_, o) => {
			if (document.querySelector(".cards")) { window.came = performance.now(); o.disconnect(); }
		}).observe(document, { childList: true, subtree: true });
		const plain = window.fetch, gate = new Promise((go) => { window.letGo = () => { go(); return true; }; });
		window.fetch = async (what, ...more) => {
			if (/api\/(plan|pending)/.test(what)) await gate;
			return plain(what, ...more);
		};`)
	p.until("window.came > 0")
	t.Logf("the first view is there after %.0f ms (goal 500)", eval[float64](p, "window.came"))
	p.see("… Being deleted")
	p.hash(w.place("boss", ""))
	p.see("Waiting for the API server, which is asked for the object, and the plan of its delete.")
	p.accessible()
	eval[bool](p, "letGo()")
	p.see("1 object is deleted.")
	p.until(`document.getElementById("waits").textContent === ""`)
}

// TestWhatIsHeldIsOnTheFirstView: with a way in.
func TestWhatIsHeldIsOnTheFirstView(t *testing.T) {
	w := newFixture(t)
	held := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "weir.dev/v1beta1", "kind": "HeldCollection", "metadata": map[string]any{"name": "widgets." + w.namespace},
	}}
	all := shared.client.Resource(policies.GroupVersion().WithResource("heldcollections"))
	made, err := all.Create(t.Context(), held, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = all.Delete(context.WithoutCancel(t.Context()), made.GetName(), metav1.DeleteOptions{}) })
	made.Object["status"] = map[string]any{"objects": int64(7), "conditions": []any{map[string]any{"type": "Held", "status": "True",
		"reason": "AwaitsDecision", "message": "a person has to decide", "lastTransitionTime": "2026-01-01T00:00:00Z"}}}
	if _, err := all.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := open(t, serve(t, shared.plane.Kubeconfig).url)
	for _, text := range []string{
		"1 Held for a decision", "widgets." + w.namespace + ": 7 objects", "a person has to decide", "kubectl weir held widgets." + w.namespace,
	} {
		p.see(text)
	}
	p.accessible()
	p.fits()
	p.picture("held")
}

// TestPlanIsThatOfTheCommand: for each propagation the page says what kubectl weir plan says, and
// prints the command that does it.
func TestPlanIsThatOfTheCommand(t *testing.T) {
	w := newFixture(t)
	boss := w.make("boss", nil)
	leaf := w.make("leaf", owners{boss})
	w.make("below", owners{leaf})
	w.make("shared", owners{boss, w.make("other", nil)})
	w.make("held", owners{leaf}, "example.com/hold")
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "weir.dev/v1beta1", "kind": "DeletionPolicy",
		"metadata": map[string]any{"name": w.namespace},
		"spec": map[string]any{
			"match": map[string]any{
				"resources":         []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}}},
				"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": w.namespace}},
			},
			"protection": map[string]any{"maxDependents": int64(2), "confirmation": "Required"},
		},
	}}
	if _, err := shared.client.Resource(policies).Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := open(t, serve(t, shared.plane.Kubeconfig).url+w.place("boss", ""))
	for _, cascade := range []string{"background", "foreground", "orphan"} {
		p.see("What its delete does")
		p.do(chromedp.Click(chromedp.CSS(fmt.Sprintf("button[data-choice=%s]", cascade))))
		p.until(fmt.Sprintf("document.querySelector('button[data-choice=%s]')?.getAttribute('aria-pressed') === 'true'", cascade))
		want := ask(t, "plan", "configmap", "boss", "-n", w.namespace, "--cascade="+cascade)
		if got := p.text("#summary"); !strings.HasSuffix(strings.TrimSpace(want), got) {
			t.Errorf("%s: the page says %q, and the command\n%s", cascade, got, want)
		}
		if refused := strings.Contains(want, "a policy refuses the delete"); refused != strings.Contains(p.text("main"), "A policy refuses the delete") {
			t.Errorf("%s: the page and the command do not agree on what policies say:\n%s\n%s", cascade, p.text("main"), want)
		}
	}
	p.see("A policy refuses to have you delete it: ") // it is a reason for which the object is there, too
	p.see("kubectl delete configmaps boss -n " + w.namespace + " --cascade=orphan --kubeconfig=")
	p.see(" --context=") // a page stays with its cluster, whatever the current context is by then
	eval[bool](p, "history.back() ?? true")
	p.until("document.querySelector('button[data-choice=foreground]')?.getAttribute('aria-pressed') === 'true'")
}

// TestCommandsCanBePasted: whoever may make a Role chooses its name, and the command that deletes
// it runs nothing else. What a terminal would act on is written out.
func TestCommandsCanBePasted(t *testing.T) {
	w := newFixture(t)
	for name, word := range map[string]string{
		`x; touch no 'y'`:                `'roles.rbac.authorization.k8s.io/x; touch no '\''y'\'''`,
		"x\x1b[2J\ntouch no\u202e 'y'\\": `$'roles.rbac.authorization.k8s.io/x\033[2J\ntouch no\342\200\256 \047y\047\134'`,
	} {
		role := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}}
		role.SetName(name)
		if _, err := shared.client.Resource(roles).Namespace(w.namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		p := open(t, serve(t, shared.plane.Kubeconfig).url+"#/object/roles.rbac.authorization.k8s.io/"+w.namespace+"/"+url.PathEscape(name))
		p.see("kubectl delete " + word + " -n " + w.namespace)
		p.accessible()
	}
}

// TestKeyboard: lines are followed without a mouse, the back button comes back, and an object is opened by its
// name.
func TestKeyboard(t *testing.T) {
	w := newFixture(t)
	boss := w.make("boss", nil)
	w.make("below", owners{w.make("leaf", owners{boss})})
	p := open(t, serve(t, shared.plane.Kubeconfig).url+w.place("boss", ""))
	p.see("configmaps/leaf")
	p.do(chromedp.Focus(chromedp.CSS(".row:nth-child(2) a")), chromedp.KeyEvent(kb.Enter))
	p.until("location.hash.endsWith('/leaf') && document.querySelector('h1')?.innerText?.endsWith('/leaf')")
	eval[bool](p, "history.back() ?? true")
	p.until("document.querySelector('h1')?.innerText?.endsWith('/boss')")
	p.do(chromedp.KeyEvent("/"))
	p.until("document.activeElement.id === 'query'")
	eval[string](p, "query.value = ''") // the key came twice: browsers send no character after a key that was taken
	p.do(chromedp.SendKeys(chromedp.CSS("#query"), "configmap "+w.namespace+" below"+kb.Enter))
	p.see("1 object is deleted.")
}

// TestAViewIsReadAgain: about every ten seconds while somebody looks at it.
func TestAViewIsReadAgain(t *testing.T) {
	w := newFixture(t)
	leaf := w.make("leaf", owners{w.make("boss", nil)})
	p := open(t, serve(t, shared.plane.Kubeconfig).url+w.place("boss", ""))
	p.see("configmaps/leaf")
	w.make("newcomer", owners{leaf})
	p.see("configmaps/newcomer")
}

// TestSaysWhenItIsNotConnected: to the cluster, and to the server of the page. What was there stays
// on the screen.
func TestSaysWhenItIsNotConnected(t *testing.T) {
	w := newFixture(t)
	boss := w.make("boss", nil)
	w.make("leaf", owners{boss})
	u := serve(t, shared.plane.Kubeconfig)
	p := open(t, u.url+w.place("boss", ""))
	p.see("configmaps/leaf")
	p.expectLost()
	if err := shared.plane.Child(plane.APIServer).Stop(time.Second); err != nil {
		t.Log(err) // it was killed, if it took longer
	}
	p.see("This page shows what was: ")
	p.see("configmaps/leaf")
	p.accessible()
	if err := shared.plane.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.make("newcomer", owners{boss})
	p.see("configmaps/newcomer")
	p.until(`document.getElementById("health").innerText === ""`)
	u.end()
	p.see("kubectl weir ui does not answer")
	p.see("configmaps/newcomer")
}
