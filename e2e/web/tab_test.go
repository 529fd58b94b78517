//go:build web

package web_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

//go:embed testdata/axe.min.js
var axe string

// tab is the page, open in a browser of its own.
type tab struct {
	*testing.T
	context.Context //nolint:containedctx // to chromedp a tab is a context
	host            string

	mu     sync.Mutex
	strays []string // requests to anywhere else, and errors of the page
	lost   bool     // errors of the network are expected
}

// open opens an address, with scripts that run before the page's. What the page asks of any other
// host, and what fails in it, fails the test.
func open(t *testing.T, address string, scripts ...string) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(shared.chromium), chromedp.NoSandbox,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.WindowSize(1280, 900))
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	p := &tab{T: t, Context: ctx, host: at.Host}
	if err := chromedp.Listen(ctx, p.heard); err != nil {
		t.Fatal(err)
	}
	call(p, network.Enable, network.EnableParams{})
	call(p, log.Enable, cdp.Empty{})
	for _, s := range scripts {
		call(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: s})
	}
	p.do(chromedp.Navigate(address))
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.strays) > 0 {
			t.Errorf("the page went astray:\n%s", strings.Join(p.strays, "\n"))
		}
	})
	return p
}

// call runs a command of the protocol.
func call[P, R any](p *tab, command cdp.Command[P, R], params P) {
	p.Helper()
	if _, err := chromedp.Call(p.Context, command, params); err != nil {
		p.Fatal(err)
	}
}

func (p *tab) heard(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if at, err := url.Parse(e.Request.URL); err != nil || at.Host != p.host {
			p.strays = append(p.strays, "a request to "+e.Request.URL)
		}
	case *runtime.EventExceptionThrown:
		p.strays = append(p.strays, fmt.Sprintf("an exception: %+v %+v", e.ExceptionDetails, e.ExceptionDetails.Exception))
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError && (!p.lost || e.Entry.Source != log.EntrySourceNetwork) {
			p.strays = append(p.strays, fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	}
}

// expectLost says that from here on the server may not answer.
func (p *tab) expectLost() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = true
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	if err := chromedp.Do(p.Context, steps...); err != nil {
		p.Fatal(err)
	}
}

// eval is what an expression of the page comes to.
func eval[R any](p *tab, expression string) R {
	p.Helper()
	value, err := chromedp.Run(p.Context, chromedp.Evaluate[R](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatal(err)
	}
	return value
}

// until waits for an expression to be true.
func (p *tab) until(expression string) {
	p.Helper()
	if _, err := chromedp.Run(p.Context, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(patience))); err != nil {
		text := eval[string](p, `location.hash + "\n" + document.body.innerText`)
		p.Fatalf("never came true: %s: %v\n%s", expression, err, text)
	}
}

// see waits until the page has a text.
func (p *tab) see(text string) {
	p.Helper()
	p.until(fmt.Sprintf("document.body.innerText.includes(%s)", quoted(text)))
}

// took is how long it takes from a change until the page has a text.
func (p *tab) took(change func(), text string) time.Duration {
	p.Helper()
	began := time.Now()
	change()
	p.see(text)
	return time.Since(began)
}

// text is what an element shows.
func (p *tab) text(selector string) string {
	p.Helper()
	return eval[string](p, fmt.Sprintf("document.querySelector(%s).innerText", quoted(selector)))
}

// hash goes to another view.
func (p *tab) hash(to string) {
	p.Helper()
	eval[string](p, fmt.Sprintf("location.hash = %s", quoted(to)))
}

func quoted(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string is always JSON
	}
	return string(data)
}

// accessible checks what is shown with axe, light and dark.
func (p *tab) accessible() {
	p.Helper()
	eval[bool](p, axe+"; true")
	for _, scheme := range []string{"dark", "light"} {
		call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		type violation struct {
			ID, Help string
			Nodes    []struct{ HTML, FailureSummary string }
		}
		for _, v := range eval[[]violation](p, `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations)`) {
			p.Errorf("%s, %s: %s: %s\n%s", scheme, v.ID, v.Help, v.Nodes[0].HTML, v.Nodes[0].FailureSummary)
		}
	}
}

// fits checks that nothing is wider than the narrowest screen.
func (p *tab) fits() {
	p.Helper()
	p.do(chromedp.EmulateViewport(320, 700))
	if wide := eval[int](p, "document.documentElement.scrollWidth"); wide > 320 {
		p.Errorf("%d pixels wide on a screen of 320: %s", wide, p.text("h1"))
	}
	p.do(chromedp.EmulateViewport(1280, 900))
}

// picture keeps a screenshot.
func (p *tab) picture(name string) {
	p.Helper()
	png, err := chromedp.Run(p.Context, chromedp.FullScreenshot(100))
	if err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(screenshotFile(p.T, name), png, 0o644); err != nil {
		p.Fatal(err)
	}
}
