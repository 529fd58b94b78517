package controller

import (
	"encoding/json"
	"net/http"

	"github.com/go-chi/chi/v5"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// controlObject is an object in the answers of /idle and /objects/UID.
type controlObject struct {
	Group      string   `json:"group"`
	Version    string   `json:"version"`
	Resource   string   `json:"resource"`
	Namespace  string   `json:"namespace,omitempty"`
	Name       string   `json:"name"`
	UID        string   `json:"uid"`
	Finalizers []string `json:"finalizers,omitempty"`
	Why        string   `json:"why,omitempty"`
}

func asControlObject(v graph.View) controlObject {
	return controlObject{Group: v.Kind.Group, Version: v.Version, Resource: v.Kind.Resource,
		Namespace: v.Namespace, Name: v.Name, UID: string(v.UID), Finalizers: v.Finalizers}
}

// ControlHandler serves programs on this machine. /idle answers whether anything is left to do (see
// Idle), and /objects/UID what is known of an object. It does no authentication.
func (c *Controller) ControlHandler() http.Handler {
	r := chi.NewRouter()
	answer := func(w http.ResponseWriter, what any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(what) // on an error the client has gone
	}
	r.Get("/ready", func(w http.ResponseWriter, _ *http.Request) {
		if err := c.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	r.Get("/idle", func(w http.ResponseWriter, req *http.Request) {
		views, err := c.Idle(req.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		waiting := make([]controlObject, len(views))
		for i, v := range views {
			waiting[i] = asControlObject(v)
		}
		answer(w, struct {
			Waiting []controlObject `json:"waiting"`
		}{waiting})
	})
	r.Get("/objects/{uid}", func(w http.ResponseWriter, req *http.Request) {
		v, found := c.store.Find(types.UID(chi.URLParam(req, "uid")))
		if !found {
			http.Error(w, "no object has this uid", http.StatusNotFound)
			return
		}
		o := asControlObject(v)
		c.store.Read(func(g *graph.Graph) { o.Why = g.Decide(v.UID).Why })
		answer(w, o)
	})
	return r
}
