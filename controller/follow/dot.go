package follow

import (
	"bytes"
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/graph/dot"
)

// GraphPath is where the graph is served, on the metrics port: the reference's path (RB 9.7).
const GraphPath = "/debug/controllers/garbage-collector-controller/graph"

// GraphHandler serves the ownership graph as DOT: all of it, or with ?uid= (repeatable) what is
// connected with those objects. It works on a copy, so events go on while it writes.
func GraphHandler(s *Store) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			http.Error(w, "only GET", http.StatusMethodNotAllowed)
			return
		}
		var views []graph.View
		if uids := req.URL.Query()["uid"]; len(uids) > 0 {
			wanted := make([]types.UID, len(uids))
			for i, uid := range uids {
				wanted[i] = types.UID(uid)
			}
			views = s.connected(wanted)
		} else {
			views = s.Views()
		}
		var drawing bytes.Buffer
		if err := dot.Write(&drawing, views); err != nil {
			http.Error(w, "draw the graph: "+err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/vnd.graphviz")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = drawing.WriteTo(w) // the client went away: nothing to tell it
	})
}
