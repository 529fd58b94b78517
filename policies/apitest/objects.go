package apitest

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// answer carries out everything but a watch.
func (s *Server) answer(r *http.Request, p place, body string) *Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	as := shown(r)
	if p.name == "" && r.Method == http.MethodGet {
		return s.listLocked(r, p, as)
	}
	o := s.objects[p.key()]
	if o == nil {
		reply := status(404, "NotFound", p.resource+" "+strconv.Quote(p.name)+" not found")
		reply.Body.(object)["details"] = object{"name": p.name, "group": p.group, "kind": p.resource}
		return reply
	}
	switch r.Method {
	case http.MethodGet:
		return &Reply{200, as(clone(o))}
	case http.MethodPatch:
		return s.patchLocked(p, o, body, as)
	case http.MethodDelete:
		return s.deleteLocked(p, o, body, as)
	}
	return status(405, "MethodNotAllowed", r.Method+" is not for "+p.key())
}

// shown is how the client wants to see objects: as they are, or only their metadata.
func shown(r *http.Request) func(object) object {
	if !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		return func(o object) object { return o }
	}
	return func(o object) object {
		return object{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": o["metadata"]}
	}
}

func (s *Server) listLocked(r *http.Request, p place, as func(object) object) *Reply {
	query := r.URL.Query()
	limit, _ := strconv.Atoi(query.Get("limit"))
	items := []any{}
	next := ""
	for _, o := range s.allLocked(p) {
		if key := str(meta(o), "namespace") + "/" + str(meta(o), "name"); key <= query.Get("continue") {
			continue
		}
		if limit > 0 && len(items) == limit {
			last := meta(items[limit-1].(object))
			next = str(last, "namespace") + "/" + str(last, "name")
			break
		}
		items = append(items, as(clone(o)))
	}
	kind, version := "List", "v1"
	if len(items) > 0 && str(items[0].(object), "kind") == "PartialObjectMetadata" {
		kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	return &Reply{200, object{"kind": kind, "apiVersion": version, "items": items,
		"metadata": object{"resourceVersion": strconv.Itoa(s.version), "continue": next}}}
}

// allLocked are the objects of a place, in order.
func (s *Server) allLocked(p place) []object {
	var out []object
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		o := s.objects[key]
		if strings.HasPrefix(key, p.kind()+"/") && (p.namespace == "" || str(meta(o), "namespace") == p.namespace) {
			out = append(out, o)
		}
	}
	return out
}

func (s *Server) patchLocked(p place, o object, body string, as func(object) object) *Reply {
	var patch object
	if err := json.Unmarshal([]byte(body), &patch); err != nil {
		return status(400, "BadRequest", err.Error())
	}
	for _, field := range []string{"uid", "resourceVersion"} {
		if want := str(meta(patch), field); want != "" && want != str(meta(o), field) {
			return status(409, "Conflict", "metadata."+field+" is "+str(meta(o), field)+", not "+want)
		}
	}
	fresh := merge(clone(o), patch).(object)
	if meta(o)["deletionTimestamp"] != nil {
		for _, f := range finalizers(fresh) {
			if !slices.Contains(finalizers(o), f) {
				return status(422, "Invalid", "no new finalizers can be added if the object is being deleted")
			}
		}
		if len(finalizers(fresh)) == 0 {
			s.removeLocked(p)
			return &Reply{200, as(fresh)}
		}
	}
	s.storeLocked(p, fresh)
	return &Reply{200, as(clone(fresh))}
}

func (s *Server) deleteLocked(p place, o object, body string, as func(object) object) *Reply {
	var options struct {
		Preconditions struct{ UID, ResourceVersion string }
	}
	if body != "" {
		if err := json.Unmarshal([]byte(body), &options); err != nil {
			return status(400, "BadRequest", err.Error())
		}
	}
	if want := options.Preconditions; want.UID != "" && want.UID != str(meta(o), "uid") || want.ResourceVersion != "" && want.ResourceVersion != str(meta(o), "resourceVersion") {
		return status(409, "Conflict", "the precondition does not hold")
	}
	if len(finalizers(o)) == 0 {
		s.removeLocked(p)
		return &Reply{200, as(clone(o))}
	}
	fresh := clone(o)
	meta(fresh)["deletionTimestamp"] = "2000-01-01T00:00:00Z"
	s.storeLocked(p, fresh)
	return &Reply{200, as(clone(fresh))}
}

// merge is a JSON merge patch.
func merge(into, patch any) any {
	p, ok := patch.(object)
	if !ok {
		return patch
	}
	m, ok := into.(object)
	if !ok {
		m = object{}
	}
	for k, v := range p {
		if v == nil {
			delete(m, k)
			continue
		}
		m[k] = merge(m[k], v)
	}
	return m
}

func (s *Server) storeLocked(p place, o object) {
	m := meta(o)
	was := s.objects[p.key()]
	what := "ADDED"
	generation, _ := meta(was)["generation"].(float64)
	if was != nil {
		what = "MODIFIED"
		m["uid"] = meta(was)["uid"]
	} else if str(m, "uid") == "" {
		m["uid"] = "uid-" + p.name
	}
	if was == nil || !reflect.DeepEqual(was["spec"], o["spec"]) {
		generation++
	}
	s.version++
	m["generation"], m["resourceVersion"] = generation, strconv.Itoa(s.version)
	s.objects[p.key()] = o
	s.history = append(s.history, event{s.version, p.kind(), p.namespace, what, clone(o)})
	s.tellLocked()
}

func (s *Server) removeLocked(p place) {
	o := s.objects[p.key()]
	if o == nil {
		return
	}
	delete(s.objects, p.key())
	s.version++
	o = clone(o)
	meta(o)["resourceVersion"] = strconv.Itoa(s.version)
	s.history = append(s.history, event{s.version, p.kind(), p.namespace, "DELETED", o})
	s.tellLocked()
}

func (s *Server) tellLocked() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

func meta(o object) object {
	m, ok := o["metadata"].(object)
	if !ok && o != nil {
		m = object{}
		o["metadata"] = m
	}
	return m
}

func str(o object, key string) string {
	s, _ := o[key].(string)
	return s
}

func finalizers(o object) []string {
	list, _ := meta(o)["finalizers"].([]any)
	out := make([]string, len(list))
	for i, f := range list {
		out[i], _ = f.(string)
	}
	return out
}

func clone(o object) object {
	if o == nil {
		return nil
	}
	return copied(o).(object)
}

func copied(v any) any {
	switch v := v.(type) {
	case object:
		out := make(object, len(v))
		for k, x := range v {
			out[k] = copied(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = copied(x)
		}
		return out
	}
	return v
}
