package apitest

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"syscall"
)

// Down ends all watches and refuses connections, as an API server that is not there.
func (s *Server) Down() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = true
	s.cuts++
	s.tellLocked()
}

// Up ends that. What was seen before is not too old to watch from.
func (s *Server) Up() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = false
}

// Snapshot takes a backup, and returns what restores it: everything is as it was then, and
// resourceVersions go on from where they were then. With a bump they go on so much later, and no
// client can watch from before. Watches are not told.
func (s *Server) Snapshot() (restore func(bump int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	objects, version, events := maps.Clone(s.objects), s.version, len(s.history)
	return func(bump int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.objects, s.version, s.history = maps.Clone(objects), version+bump, s.history[:events:events]
		if bump > 0 {
			s.oldest = s.version
		}
	}
}

// refused is what a client gets while the server is away.
func (s *Server) refused() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return fmt.Errorf("dial api.test: connect: %w", syscall.ECONNREFUSED)
	}
	return nil
}

// tooNew is the answer to who asks for more than there is yet; nil for others. A watch that is not
// to begin with a list waits instead.
func (s *Server) tooNew(r *http.Request) *Reply {
	query := r.URL.Query()
	from, _ := strconv.Atoi(query.Get("resourceVersion"))
	if from <= s.version || query.Get("watch") != "" && query.Get("sendInitialEvents") != "true" {
		return nil
	}
	reply := status(504, "Timeout", fmt.Sprintf("Too large resource version: %d, current: %d", from, s.version))
	reply.Body.(object)["details"] = object{"causes": []any{object{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}}}
	return reply
}
