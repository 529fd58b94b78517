//go:build web && full

package web_test

import (
	"context"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// lost is what the page says when no server speaks to it.
const lost = "Not connected to the cluster, so this page shows what was"

// hold has an object terminate, and stay until the test is over.
func (w *fixture) hold(name string) (told string) {
	w.Helper()
	w.make(name, nil, "example.com/hold")
	w.delete(name, metav1.DeletePropagationBackground)
	w.Cleanup(func() {
		_, err := shared.client.Resource(configMaps).Namespace(w.namespace).Patch(context.WithoutCancel(w.Context()), name, types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
		if err != nil {
			w.Error(err)
		}
	})
	return "configmaps/" + w.namespace + "/" + name
}

// TestAPageWhoseServerIsSilentSaysSo: a server that hangs keeps its connections open, and is as
// good as one that has ended. When it goes on, so does the page.
func TestAPageWhoseServerIsSilentSaysSo(t *testing.T) {
	w := newFixture(t)
	u := serve(t, shared.plane.Kubeconfig)
	page := open(t, u.url+"#/pending")
	page.see("Being deleted")
	held := w.hold("held")
	page.see(held)
	page.expectLost()
	if err := u.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	page.see(lost)
	page.see(held) // what was there stays
	if err := u.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	page.until("!document.body.innerText.includes(" + quoted(lost) + ")")
	page.see(w.hold("late"))
}

// beside opens an address in another tab of the browser.
func (p *tab) beside(address string) *tab {
	p.Helper()
	ctx, stop := chromedp.NewContext(p.Context)
	p.Cleanup(stop)
	other := &tab{T: p.T, Context: ctx, host: p.host}
	other.do(chromedp.Navigate(address))
	return other
}

// look tells the page whether a user sees it, as the browser does when its tabs change.
func (p *tab) look(away bool) {
	p.Helper()
	hidden := "false"
	if away {
		hidden = "true"
	}
	eval[bool](p, `Object.defineProperty(document, "hidden", { configurable: true, get: () => `+hidden+` }); document.dispatchEvent(new Event("visibilitychange"))`)
}

// TestHiddenTabsHoldUpNoOther: a browser has about six connections to a server, and a page keeps
// one only while it is seen. When it is seen again, it shows what is there by then.
func TestHiddenTabsHoldUpNoOther(t *testing.T) {
	w := newFixture(t)
	u := serve(t, shared.plane.Kubeconfig)
	first := open(t, u.url+"#/pending")
	last := first
	for range 8 {
		last.see("Being deleted")
		last.look(true)
		last = first.beside(u.url + "#/pending")
	}
	last.see("Being deleted")
	held := w.hold("held")
	last.see(held)
	if eval[bool](first, "document.body.innerText.includes("+quoted(held)+")") {
		t.Error("a page that nobody sees is kept up to date")
	}
	first.look(false)
	first.see(held)
}
