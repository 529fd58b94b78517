package apitest

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"
)

// watch answers with a stream of events, which ends with the request, or when watches are cut.
func (s *Server) watch(r *http.Request, p place) *http.Response {
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	initial := r.URL.Query().Get("sendInitialEvents") == "true"
	as := shown(r)
	s.mu.Lock()
	if reply := s.tooNew(r); reply != nil {
		s.mu.Unlock()
		return reply.response(r)
	}
	if from > 0 && from < s.oldest {
		s.mu.Unlock()
		return status(410, "Expired", "too old resource version").response(r)
	}
	var first []any
	if initial || from == 0 {
		for _, o := range s.allLocked(p) {
			first = append(first, object{"type": "ADDED", "object": as(clone(o))})
		}
		from = s.version
	}
	if initial {
		first = append(first, object{"type": "BOOKMARK", "object": as(object{"kind": s.kindLocked(p), "apiVersion": versionOf(p), "metadata": object{
			"resourceVersion": strconv.Itoa(from), "annotations": object{"k8s.io/initial-events-end": "true"}}})})
	}
	cuts, seen := s.cuts, len(s.history)
	for seen > 0 && s.history[seen-1].version > from {
		seen--
	}
	s.mu.Unlock()
	body, out := io.Pipe()
	go func() {
		defer func() { _ = out.Close() }() // the client has gone: there is none to tell
		to := json.NewEncoder(out)
		for _, e := range first {
			if to.Encode(e) != nil {
				return
			}
		}
		s.stream(r, p, to, as, seen, cuts, from)
	}()
	// The reader may be gone while the writer waits for it.
	go func() {
		<-r.Context().Done()
		out.CloseWithError(r.Context().Err())
	}()
	return &http.Response{
		StatusCode: 200, Status: "OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: -1, Body: body,
	}
}

// bookmarkEvery is how often a watch that asks for them is told how far it has come, as on the real
// one.
const bookmarkEvery = time.Minute

func (s *Server) stream(r *http.Request, p place, to *json.Encoder, as func(object) object, seen, cuts, from int) {
	// As the real one: a watch ends when it was asked to, and tells 2 s before how far it has come.
	var bookmark, last, end <-chan time.Time
	seconds, _ := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	if seconds > 2 {
		end = time.After(time.Duration(seconds) * time.Second)
	}
	if r.URL.Query().Get("allowWatchBookmarks") == "true" {
		ticker := time.NewTicker(bookmarkEvery)
		defer ticker.Stop()
		bookmark = ticker.C
		if seconds > 2 {
			last = time.After(time.Duration(seconds-2) * time.Second)
		}
	}
	for {
		s.mu.Lock()
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		seen = min(seen, len(s.history)) // less than before after a restore
		fresh, changed, cut, version, kind := s.history[seen:], s.changed, s.cuts != cuts, s.version, s.kindLocked(p)
		seen = len(s.history)
		s.mu.Unlock()
		if cut {
			return
		}
		for _, e := range fresh {
			if e.version <= from || e.kind != p.kind() || p.namespace != "" && e.namespace != p.namespace {
				continue
			}
			if to.Encode(object{"type": e.what, "object": as(clone(e.object))}) != nil {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-end:
			return
		case <-changed:
			continue
		case <-bookmark:
		case <-last:
		}
		if version < from {
			continue // it has not come as far as what was asked for
		}
		if to.Encode(object{"type": "BOOKMARK", "object": as(object{"kind": kind, "apiVersion": versionOf(p), "metadata": object{
			"resourceVersion": strconv.Itoa(version)}})}) != nil {
			return
		}
	}
}

// kindLocked is the kind of a bookmark: that of the objects, if there ever were any. Typed clients
// take no other.
func (s *Server) kindLocked(p place) string {
	return cmp.Or(s.kinds[p.kind()], "Unknown")
}

func versionOf(p place) string {
	if p.group == "" {
		return p.version
	}
	return p.group + "/" + p.version
}
