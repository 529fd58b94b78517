package e2e

import (
	"net/url"
	"strings"
)

const graphPath = "/debug/controllers/garbage-collector-controller/graph"

// inGraph tells whether weir's graph has an object or a reference of this uid.
func (w *fixture) inGraph(uid string) bool {
	w.Helper()
	text, err := w.weir.Get(w.Context(), graphPath+"?uid="+url.QueryEscape(uid), "")
	if err != nil {
		w.Fatal(err)
	}
	return strings.Contains(text, uid)
}
