package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"
)

// request is one that the API server answered, as its audit log has it.
type request struct {
	Verb string `json:"verb"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Group     string `json:"apiGroup"`
		Resource  string `json:"resource"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"objectRef"`
	Status struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Ended time.Time `json:"stageTimestamp"`
}

// requests are those of a user about objects in the fixture's namespace, by verb:
// all of them, or only those that are about the named objects.
func (w *fixture) requests(user string, names ...string) map[string]int {
	w.Helper()
	counts := map[string]int{}
	for _, r := range w.audit(user) {
		if len(names) == 0 || slices.Contains(names, r.Object.Name) {
			counts[r.Verb]++
		}
	}
	return counts
}

// audit reads what a user asked about objects in the fixture's namespace.
func (w *fixture) audit(user string) []request {
	w.Helper()
	return w.auditWith(w.namespace, func(r request) bool { return r.User.Username == user && r.Object.Namespace == w.namespace })
}

// auditOf reads all that a user asked for.
func (w *fixture) auditOf(user string) []request {
	w.Helper()
	return w.auditWith(user, func(r request) bool { return r.User.Username == user })
}

// auditWith reads the requests that are wanted, of lines that have some text.
func (w *fixture) auditWith(text string, wanted func(request) bool) []request {
	w.Helper()
	f, err := os.Open(w.plane.AuditLog)
	if err != nil {
		w.Fatal(err)
	}
	defer f.Close()
	var requests []request
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !strings.Contains(lines.Text(), text) {
			continue // decoding is what takes time
		}
		var r request
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue // the last line is being written
		}
		if wanted(r) {
			requests = append(requests, r)
		}
	}
	if err := lines.Err(); err != nil {
		w.Fatal(err)
	}
	return requests
}

// awaitRequests waits until a user's requests are at least so many: the log is
// written after the answer.
func (w *fixture) awaitRequests(user, verb string, n int, names ...string) {
	w.Helper()
	w.until("the audit log has the requests", func(context.Context) (bool, error) {
		return w.requests(user, names...)[verb] >= n, nil
	})
}
