package page

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// served is a page whose questions are answered with themselves.
type served struct{ *Page }

func newPage(t *testing.T) *served {
	t.Helper()
	p, err := Listen(Options{Cluster: "town", Flags: " --context=town", Ask: func(_ context.Context, question string, q url.Values) (any, error) {
		if question == "none" {
			return nil, errors.New("the page answers no question")
		}
		return map[string]any{"question": question, "q": q}, nil
	}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.listener.Close() })
	return &served{p}
}

// request is one as a browser sends it that has the page open.
func (w *served) request(path string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/"+w.token+path, nil)
	r.Host = w.listener.Addr().String()
	return r
}

func (w *served) send(r *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	w.handler().ServeHTTP(answer, r)
	return answer
}

// TestWhoMayAsk: who has the address may, and no other page of the same browser, be it one that has
// a name of its own for this machine.
func TestWhoMayAsk(t *testing.T) {
	w := newPage(t)
	_, port, _ := strings.Cut(w.listener.Addr().String(), ":")
	for name, c := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"the page":                 {func(*http.Request) {}, http.StatusOK},
		"the page by another name": {func(r *http.Request) { r.Host = "localhost:" + port }, http.StatusOK},
		"the page's own request": {func(r *http.Request) {
			r.Header.Set("Origin", "http://"+r.Host)
			r.Header.Set("Sec-Fetch-Site", "same-origin")
		}, http.StatusOK},
		"typed": {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") }, http.StatusOK},
		"a link in a mail": {func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Dest", "document")
		}, http.StatusOK},
		"a name that leads here":           {func(r *http.Request) { r.Host = "example.com:" + port }, http.StatusMisdirectedRequest},
		"no port":                          {func(r *http.Request) { r.Host = "127.0.0.1" }, http.StatusMisdirectedRequest},
		"another port":                     {func(r *http.Request) { r.Host = "127.0.0.1:1" }, http.StatusMisdirectedRequest},
		"no name":                          {func(r *http.Request) { r.Host = "" }, http.StatusMisdirectedRequest},
		"another page":                     {func(r *http.Request) { r.Header.Set("Origin", "http://example.com") }, http.StatusForbidden},
		"another page of this machine":     {func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }, http.StatusForbidden},
		"a page without an origin":         {func(r *http.Request) { r.Header.Set("Origin", "null") }, http.StatusForbidden},
		"another page's script or picture": {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"another port's script":            {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, http.StatusForbidden},
		"a frame": {func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Dest", "iframe")
		}, http.StatusForbidden},
		"without the token":      {func(r *http.Request) { r.URL.Path = "/api/state" }, http.StatusForbidden},
		"with another token":     {func(r *http.Request) { r.URL.Path = "/" + strings.Repeat("A", len(w.token)) + "/api/state" }, http.StatusForbidden},
		"with part of the token": {func(r *http.Request) { r.URL.Path = "/" + w.token[1:] + "/api/state" }, http.StatusForbidden},
		"something else":         {func(r *http.Request) { r.URL.Path += "/x" }, http.StatusNotFound},
		"to change something":    {func(r *http.Request) { r.Method = http.MethodPost }, http.StatusMethodNotAllowed},
		"to delete something":    {func(r *http.Request) { r.Method = http.MethodDelete }, http.StatusMethodNotAllowed},
	} {
		r := w.request("/api/state")
		c.change(r)
		answer := w.send(r)
		if answer.Code != c.status || (answer.Code == http.StatusOK) != strings.Contains(answer.Body.String(), "town") {
			t.Errorf("%s: %d, want %d: %s", name, answer.Code, c.status, answer.Body)
		}
		for header, has := range map[string]string{
			"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
		} {
			if !strings.Contains(answer.Header().Get(header), has) {
				t.Errorf("%s: %s is %q, want %s", name, header, answer.Header().Get(header), has)
			}
		}
	}
}

// TestFilesOfThePage: they are under the token, with their types, and no path leads out of them.
func TestFilesOfThePage(t *testing.T) {
	w := newPage(t)
	for path, want := range map[string]string{
		"/": "text/html; charset=utf-8", "/assets/page.js": "text/javascript; charset=utf-8", "/assets/icon.svg": "image/svg+xml",
		"/assets/../../page.go": "", "/assets/": "", "/assets/none.js": "", "/assets/../page_test.go": "", "/page.js": "",
	} {
		r := w.request("/")
		r.URL.Path = "/" + w.token + path
		answer := w.send(r)
		if want == "" && answer.Code != http.StatusNotFound || want != "" && (answer.Code != http.StatusOK || answer.Header().Get("Content-Type") != want) {
			t.Errorf("%s: %d %s, want %q: %.40s", path, answer.Code, answer.Header().Get("Content-Type"), want, answer.Body)
		}
	}
}

// TestQuestionsAreAnswered: with what was asked for, or with why that cannot be answered.
func TestQuestionsAreAnswered(t *testing.T) {
	w := newPage(t)
	for path, c := range map[string]struct {
		status int
		has    string
	}{
		"/api/state":                 {http.StatusOK, `{"cluster":"town","flags":" --context=town"}`},
		"/api/plan?name=a&cascade=b": {http.StatusOK, `{"q":{"cascade":["b"],"name":["a"]},"question":"plan"}`},
		"/api/none":                  {http.StatusBadGateway, `{"error":"the page answers no question"}`},
	} {
		answer := w.send(w.request(path))
		if got := strings.TrimSpace(answer.Body.String()); answer.Code != c.status || got != c.has || !json.Valid([]byte(got)) {
			t.Errorf("%s: %d %s, want %d %s", path, answer.Code, got, c.status, c.has)
		}
	}
}

// TestThePageEndsWithItsServer: and with what it asks for then.
func TestThePageEndsWithItsServer(t *testing.T) {
	w := newPage(t)
	asked := make(chan struct{})
	w.Ask = func(ctx context.Context, _ string, _ url.Values) (any, error) {
		close(asked)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- w.Serve(ctx) }()
	go func() {
		if answer, err := http.Get(w.URL() + "api/pending"); err == nil {
			_ = answer.Body.Close()
		}
	}()
	<-asked
	stop()
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
	if conn, err := net.Dial("tcp", w.listener.Addr().String()); err == nil {
		_ = conn.Close()
		t.Error("it still listens")
	}
}
