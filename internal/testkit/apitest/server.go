// Package apitest is an API server in memory for unit tests: a transport without sockets, so that
// it works within a bubble of testing/synctest, on the bubble's clock.
//
// It knows no kinds: what is put into it, or created, can be read, listed, watched, updated,
// patched and deleted, with the preconditions, conflicts and finalizers of the real one as far as
// Weir rests on them. It does not replace the end-to-end tests, which run against the real one.
//
// One lock guards all that is stored. A watch has two goroutines, which end with its request.
package apitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// Server is the API server.
type Server struct {
	// Ahead is its clock before ours, which it tells in the Date of its answers. Set it before use.
	Ahead time.Duration

	mu        sync.Mutex
	intercept func(Request) *Reply
	version   int
	objects   map[string]object // by place.key
	kinds     map[string]string // by place.kind: how objects call it
	history   []event
	oldest    int           // watches from before are too old
	cuts      int           // how often watches were cut
	down      bool          // the server is away
	changed   chan struct{} // closed at the next event or cut; made by who waits for it, so that it is of a bubble
	requests  []Request
}

// Request is one that came in.
type Request struct {
	Method, Path, Query, Body string
}

func (r Request) String() string {
	return strings.TrimSpace(strings.Join([]string{r.Method, r.Path, r.Body}, " "))
}

// Reply is an answer: a Body that is encoded as JSON.
type Reply struct {
	Code int
	Body any
}

type object = map[string]any

// place is where an object is, or, without a name, where objects are.
type place struct{ group, version, resource, namespace, name, subresource string }

func (p place) kind() string { return p.group + "/" + p.resource }
func (p place) key() string {
	return strings.Join([]string{p.group, p.resource, p.namespace, p.name}, "/")
}

type event struct {
	version   int
	kind      string
	namespace string
	what      string
	object    object
}

// New is a server without objects.
func New() *Server {
	return &Server{version: 1, objects: map[string]object{}, kinds: map[string]string{}}
}

// Config is how clients reach the server: typed ones, too, speak JSON with it. Their rate is not
// limited.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: "http://api.test", QPS: -1, Transport: s, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

// Intercept lets f answer in the server's place from now on; nil, from it, leaves the answer to the
// server.
func (s *Server) Intercept(f func(Request) *Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = f
}

// Put creates or replaces an object, written in YAML. A uid, a generation and a resourceVersion are
// added.
func (s *Server) Put(resource, text string) {
	var o object
	if json.Unmarshal([]byte(text), &o) != nil { // which takes a tenth of the time, where tests put thousands
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			panic(fmt.Sprintf("apitest: %v in:\n%s", err, text))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	group, version, grouped := strings.Cut(str(o, "apiVersion"), "/")
	if !grouped {
		group, version = "", group
	}
	p := place{group: group, version: version, resource: resource, namespace: str(meta(o), "namespace"), name: str(meta(o), "name")}
	s.storeLocked(p, o)
}

// Get is an object as it is now, or nil. key is RESOURCE.GROUP/NAMESPACE/NAME, or
// RESOURCE.GROUP/NAME.
func (s *Server) Get(key string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return clone(s.objects[parse(key).key()])
}

// Remove takes an object away at once, whatever finalizers it has.
func (s *Server) Remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(parse(key))
}

// Forget takes an object away as Remove does, and no watch says so.
func (s *Server) Forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, parse(key).key())
}

// Cut ends all watches. What was seen before is then too old to watch from, so everybody has to
// list again.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.oldest = s.version
	s.cuts++
	s.tellLocked()
}

// Requests are those that came in since the last call, without lists and watches.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.requests
	s.requests = nil
	return out
}

func parse(key string) place {
	parts := strings.Split(key, "/")
	resource, group, _ := strings.Cut(parts[0], ".")
	p := place{group: group, resource: resource, name: parts[len(parts)-1]}
	if len(parts) == 3 {
		p.namespace = parts[1]
	}
	return p
}

// RoundTrip implements http.RoundTripper.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.roundTrip(r)
	if err == nil && s.Ahead != 0 {
		resp.Header.Set("Date", time.Now().Add(s.Ahead).UTC().Format(http.TimeFormat))
	}
	return resp, err
}

func (s *Server) roundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if err := s.refused(); err != nil {
		return nil, err
	}
	in := Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			return nil, err
		}
		in.Body = string(body)
	}
	p, known := placeOf(r.URL.Path)
	single := p.name != "" || r.Method != http.MethodGet
	s.mu.Lock()
	if single {
		s.requests = append(s.requests, in)
	}
	intercept := s.intercept
	s.mu.Unlock()
	if intercept != nil {
		if reply := intercept(in); reply != nil {
			return reply.response(r), nil
		}
	}
	switch {
	case !known:
		return status(404, "NotFound", "the server could not find the requested resource").response(r), nil
	case !single && r.URL.Query().Get("watch") != "":
		return s.watch(r, p), nil
	}
	return s.answer(r, p, in.Body).response(r), nil
}

// placeOf reads a path: /api/v1 or /apis/GROUP/VERSION, then
// [namespaces/NAMESPACE/]RESOURCE[/NAME[/SUBRESOURCE]].
func placeOf(path string) (place, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var p place
	switch {
	case len(parts) > 2 && parts[0] == "api":
		p.version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		p.group, p.version, parts = parts[1], parts[2], parts[3:]
	default:
		return place{}, false
	}
	if len(parts) > 2 && parts[0] == "namespaces" && !slices.Contains([]string{"status", "finalize"}, parts[2]) {
		p.namespace, parts = parts[1], parts[2:]
	}
	p.resource = parts[0]
	if len(parts) > 1 {
		p.name = parts[1]
	}
	if len(parts) > 2 {
		p.subresource = parts[2]
	}
	return p, true
}

func (a *Reply) response(r *http.Request) *http.Response {
	body, err := json.Marshal(a.Body)
	if err != nil {
		panic("apitest: " + err.Error())
	}
	return &http.Response{
		StatusCode: a.Code, Status: http.StatusText(a.Code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
	}
}

// Refuse is a failure as an API server words it.
func Refuse(code int, reason, message string) *Reply { return status(code, reason, message) }

func status(code int, reason, message string) *Reply {
	return &Reply{code, object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message}}
}
