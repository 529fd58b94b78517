// Package page serves the page of kubectl weir ui: what its commands answer about a cluster, to one
// user on this machine.
//
// It changes nothing in the cluster: no request of the page can. Whoever has the address may open
// it: it listens on the loopback interface only, and the path begins with a random token. Browsers
// also send requests of other pages, so Host, Origin and Sec-Fetch-Site are checked. The page loads
// nothing from other origins, and sends nothing to them.
//
// Questions are answered on goroutines of the server; one more closes the server at the end, joined
// by Serve. There are no locks.
package page

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
)

//go:embed assets
var assets embed.FS

// Options say what the page shows.
type Options struct {
	// Cluster names the cluster to the user. Flags select it in commands that are shown: the page
	// stays with its cluster when the current context changes.
	Cluster, Flags string
	// Ask answers a question. The answer is sent as JSON; an error is shown to the user.
	Ask func(ctx context.Context, question string, q url.Values) (any, error)
}

// Page serves the page.
type Page struct {
	Options
	listener net.Listener
	token    string
}

// Listen opens a port on the loopback interface; 0: any free port.
func Listen(o Options, port int) (*Page, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port)))
	if err != nil {
		return nil, fmt.Errorf("listen on the loopback interface: %w", err)
	}
	return &Page{Options: o, listener: l, token: rand.Text()}, nil
}

// URL returns the address of the page. Whoever has it may read what the user may read.
func (p *Page) URL() string { return fmt.Sprintf("http://%s/%s/", p.listener.Addr(), p.token) }

// answerTime bounds the answer to a question.
const answerTime = time.Minute

// Serve serves the page until ctx ends.
func (p *Page) Serve(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	s := &http.Server{
		Handler:           p.handler(),
		ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	var closing sync.WaitGroup
	closing.Go(func() {
		<-ctx.Done()
		_ = s.Close() // open connections are cut
	})
	defer closing.Wait()
	defer stop()
	if err := s.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}

func (p *Page) handler() http.Handler {
	r := chi.NewRouter()
	r.Use(p.guard)
	r.Route("/{token}", func(r chi.Router) {
		r.Use(p.authorize)
		r.Get("/", asset("index.html"))
		r.Get("/assets/*", func(w http.ResponseWriter, r *http.Request) { asset(chi.URLParam(r, "*"))(w, r) })
		r.Get("/api/{question}", p.ask)
	})
	return r
}

// ask answers a question of the page.
func (p *Page) ask(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), answerTime)
	defer cancel()
	said, err := any(map[string]string{"cluster": p.Cluster, "flags": p.Flags}), error(nil)
	if question := chi.URLParam(r, "question"); question != "state" {
		said, err = p.Ask(ctx, question, r.URL.Query())
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		said = map[string]string{"error": err.Error()}
		w.WriteHeader(http.StatusBadGateway)
	}
	_ = json.NewEncoder(w).Encode(said) // an error means that the client went away
}

// guard refuses requests that another page has sent, or that use another name for this machine.
func (p *Page) guard(next http.Handler) http.Handler {
	_, port, _ := net.SplitHostPort(p.listener.Addr().String())
	hosts := map[string]bool{"127.0.0.1:" + port: true, "localhost:" + port: true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
			"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
		switch {
		case !hosts[r.Host]:
			http.Error(w, "this server has another name: open the address that kubectl weir ui has printed",
				http.StatusMisdirectedRequest)
		case origin != "" && origin != "http://"+r.Host:
			http.Error(w, "another page may not ask", http.StatusForbidden)
		case site != "" && site != "same-origin" && site != "none" && r.Header.Get("Sec-Fetch-Dest") != "document":
			http.Error(w, "another page may not ask", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func (p *Page) authorize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(chi.URLParam(r, "token")), []byte(p.token)) != 1 {
			http.Error(w, "the address has the wrong token: open the one that kubectl weir ui has printed; "+
				"each start has another", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
	".js": "text/javascript; charset=utf-8",
}

// asset serves a file. Its content type does not depend on the MIME types of this machine.
func asset(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		file := path.Join("assets", path.Clean("/"+name))
		data, err := fs.ReadFile(assets, file)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", contentTypes[file[strings.LastIndex(file, "."):]])
		_, _ = w.Write(data) // an error means that the client went away
	}
}
