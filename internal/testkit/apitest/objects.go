package apitest

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// answer carries out everything but a watch.
func (s *Server) answer(r *http.Request, p place, body string) *Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	as := shown(r)
	if p.name == "" && r.Method == http.MethodGet {
		if reply := s.tooNew(r); reply != nil {
			return reply
		}
		return s.listLocked(r, p, as)
	}
	if r.Method == http.MethodPost && p.name == "" {
		return s.createLocked(p, body, as)
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
	case http.MethodPut:
		return s.updateLocked(p, o, body, as)
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
	var all []object
	listed := s.version
	from, after, continues := strings.Cut(query.Get("continue"), "/") // the pages of a list are of one version
	if !continues {
		from = query.Get("resourceVersion")
	}
	if continues || query.Get("resourceVersionMatch") == "Exact" {
		at, _ := strconv.Atoi(from)
		if at < s.oldest {
			return status(410, "Expired", "too old resource version")
		}
		all, listed = s.allAtLocked(p, at), at
	} else {
		all = s.allLocked(p)
	}
	selector, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return status(400, "BadRequest", err.Error())
	}
	field, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return status(400, "BadRequest", err.Error())
	}
	for _, o := range all {
		if continues && str(meta(o), "namespace")+"/"+str(meta(o), "name") <= after {
			continue
		}
		source, _ := o["source"].(object) // of an Event
		if !field.Matches(fields.Set{
			"metadata.name": str(meta(o), "name"), "metadata.namespace": str(meta(o), "namespace"),
			"reason": str(o, "reason"), "source": str(source, "component"),
		}) {
			continue
		}
		if !selector.Matches(labels.Set((&unstructured.Unstructured{Object: o}).GetLabels())) {
			continue
		}
		if limit > 0 && len(items) == limit {
			last := meta(items[limit-1].(object))
			next = strconv.Itoa(listed) + "/" + str(last, "namespace") + "/" + str(last, "name")
			break
		}
		items = append(items, as(clone(o)))
	}
	kind, version := "List", "v1"
	if len(items) > 0 { // what a typed client reads
		kind, version = s.kindLocked(p)+"List", versionOf(p)
	}
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
		kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	return &Reply{200, object{"kind": kind, "apiVersion": version, "items": items,
		"metadata": object{"resourceVersion": strconv.Itoa(listed), "continue": next}}}
}

// allLocked are the objects of a place, in order.
func (s *Server) allLocked(p place) []object {
	var out []object
	var keys []string
	prefix := p.kind() + "/"
	for key, o := range s.objects {
		if strings.HasPrefix(key, prefix) && (p.namespace == "" || str(meta(o), "namespace") == p.namespace) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		out = append(out, s.objects[key])
	}
	return out
}

func (s *Server) createLocked(p place, body string, as func(object) object) *Reply {
	var fresh object
	if err := json.Unmarshal([]byte(body), &fresh); err != nil {
		return status(400, "BadRequest", err.Error())
	}
	p.name = str(meta(fresh), "name")
	if s.objects[p.key()] != nil {
		return status(409, "AlreadyExists", p.resource+" "+strconv.Quote(p.name)+" already exists")
	}
	s.storeLocked(p, fresh)
	return &Reply{201, as(clone(fresh))}
}

func (s *Server) updateLocked(p place, o object, body string, as func(object) object) *Reply {
	var fresh object
	if err := json.Unmarshal([]byte(body), &fresh); err != nil {
		return status(400, "BadRequest", err.Error())
	}
	if want := str(meta(fresh), "resourceVersion"); want != "" && want != str(meta(o), "resourceVersion") {
		return status(409, "Conflict", "metadata.resourceVersion is "+str(meta(o), "resourceVersion")+", not "+want)
	}
	s.storeLocked(p, fresh)
	return &Reply{200, as(clone(fresh))}
}

// allAtLocked are the objects of a place as they were at a resourceVersion, in order.
func (s *Server) allAtLocked(p place, at int) []object {
	then := map[string]object{}
	for _, e := range s.history {
		if e.version > at || e.kind != p.kind() || p.namespace != "" && e.namespace != p.namespace {
			continue
		}
		key := e.namespace + "/" + str(meta(e.object), "name")
		if then[key] = e.object; e.what == "DELETED" {
			delete(then, key)
		}
	}
	var out []object
	for _, key := range slices.Sorted(maps.Keys(then)) {
		out = append(out, then[key])
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
		Preconditions     struct{ UID, ResourceVersion string }
		PropagationPolicy string
	}
	if body != "" {
		if err := json.Unmarshal([]byte(body), &options); err != nil {
			return status(400, "BadRequest", err.Error())
		}
	}
	if want := options.Preconditions; want.UID != "" && want.UID != str(meta(o), "uid") || want.ResourceVersion != "" && want.ResourceVersion != str(meta(o), "resourceVersion") {
		return status(409, "Conflict", "the precondition does not hold")
	}
	fresh := clone(o)
	propagate(fresh, options.PropagationPolicy)
	if len(finalizers(fresh)) == 0 {
		s.removeLocked(p)
		return &Reply{200, as(clone(o))}
	}
	if reflect.DeepEqual(fresh, o) && meta(o)["deletionTimestamp"] != nil {
		return &Reply{200, as(fresh)}
	}
	meta(fresh)["deletionTimestamp"] = "2000-01-01T00:00:00Z"
	s.storeLocked(p, fresh)
	return &Reply{200, as(clone(fresh))}
}

// propagate is what a propagation policy does to an object's finalizers.
func propagate(o object, policy string) {
	wanted := map[string]string{"Orphan": metav1.FinalizerOrphanDependents, "Foreground": metav1.FinalizerDeleteDependents}[policy]
	if policy == "" {
		return
	}
	list := []any{}
	for _, f := range finalizers(o) {
		if f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents {
			list = append(list, f)
		}
	}
	if wanted != "" {
		list = append(list, wanted)
	}
	meta(o)["finalizers"] = list
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
	s.kinds[p.kind()] = str(o, "kind")
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
