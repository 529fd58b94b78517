package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller/graph"
)

// requestTimeout bounds each request. The API server itself gives up on a single DELETE after 34 s
// (RB 6.18).
const requestTimeout = 40 * time.Second

// requester makes the requests of actions: one each, with the preconditions that the action carries.
type requester struct {
	client  *rest.RESTClient
	limiter *limiter
	history *history
	metrics *metrics
	// impatient: it does not wait for kinds in trouble; see limiter.acquire.
	impatient bool
	// kinds are how each resource is written: in which version, and what its kind is called.
	kinds *atomic.Pointer[map[schema.GroupResource]schema.GroupVersionKind]
}

func newRequester(config *rest.Config, httpClient *http.Client, l *limiter, m *metrics) (*requester, error) {
	c := metadata.ConfigFor(config)
	c.GroupVersion = &schema.GroupVersion{}
	c.APIPath = "/"
	c.QPS, c.Burst, c.RateLimiter = -1, 0, nil // the limiter adapts instead
	client, err := rest.RESTClientForConfigAndClient(c, httpClient)
	if err != nil {
		return nil, fmt.Errorf("make a client for requests: %w", err)
	}
	return &requester{client: client, limiter: l, history: &history{}, metrics: m, kinds: &atomic.Pointer[map[schema.GroupResource]schema.GroupVersionKind]{}}, nil
}

// forWorkers is a requester for who has more to do than to wait for a kind.
func (r *requester) forWorkers() *requester {
	w := *r
	w.impatient = true
	return &w
}

// serve remembers how each resource is written.
func (r *requester) serve(resources []graph.Resource) {
	kinds := make(map[schema.GroupResource]schema.GroupVersionKind, len(resources))
	for _, res := range resources {
		kinds[res.GroupResource()] = schema.GroupVersionKind{Group: res.Group, Version: res.Version, Kind: res.Kind}
	}
	r.kinds.Store(&kinds)
	r.limiter.forget(func(kind schema.GroupResource) bool { _, ok := kinds[kind]; return ok })
}

func (r *requester) kindOf(gr schema.GroupResource) schema.GroupVersionKind {
	if m := r.kinds.Load(); m != nil {
		return (*m)[gr]
	}
	return schema.GroupVersionKind{}
}

func (r *requester) versionOf(gr schema.GroupResource) (schema.GroupVersion, error) {
	gvk := r.kindOf(gr)
	if gvk.Version == "" {
		return schema.GroupVersion{}, fmt.Errorf("the cluster does not serve %s now", gr)
	}
	return gvk.GroupVersion(), nil
}

// What is asked for ends with plain JSON: an aggregated API may know nothing of PartialObjectMetadata, and
// then sends whole objects.
const acceptMetadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
	"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

const acceptMetadataList = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," +
	"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// object addresses one object.
func object(req *rest.Request, gv schema.GroupVersion, resource, namespace, name string) *rest.Request {
	return collection(req, gv, resource, namespace).Name(name)
}

// collection addresses all objects of a kind. client-go's own retries are off: they would hide 429s from
// the limiter and hold a worker while they sleep.
func collection(req *rest.Request, gv schema.GroupVersion, resource, namespace string) *rest.Request {
	prefix := []string{"/apis", gv.Group, gv.Version}
	if gv.Group == "" {
		prefix = []string{"/api", gv.Version}
	}
	return req.AbsPath(prefix...).NamespaceIfScoped(namespace, namespace != "").Resource(resource).MaxRetries(0)
}

// do sends a request about a kind when there is a place for it.
func (r *requester) do(ctx context.Context, verb string, kind schema.GroupResource, req *rest.Request) (result rest.Result, err error) {
	if ctx, err = r.history.enter(ctx); err != nil {
		return rest.Result{}, err
	}
	if err := r.limiter.acquire(ctx, kind, !r.impatient); err != nil {
		return rest.Result{}, err
	}
	err = r.placed(ctx, verb, kind, func(ctx context.Context) error {
		result = req.Do(ctx)
		return result.Error()
	})
	return result, err
}

// spare makes a request about a kind when nobody else wants the place, by another client.
func (r *requester) spare(ctx context.Context, verb string, kind schema.GroupResource, request func(context.Context) error) error {
	ctx, err := r.history.enter(ctx)
	if err != nil {
		return err
	}
	if err := r.limiter.acquireSpare(ctx, kind); err != nil {
		return err
	}
	return r.placed(ctx, verb, kind, request)
}

// placed makes a request that has its place, and gives that back.
func (r *requester) placed(ctx context.Context, verb string, kind schema.GroupResource, request func(context.Context) error) error {
	a := answer{long: verb == "list" || verb == "deletecollection"}
	usual := time.Duration(r.limiter.slow.Load())
	if a.long {
		usual = longIsLate
	}
	late := time.AfterFunc(usual, func() { r.limiter.isLate(kind) })
	within, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	began := time.Now()
	err := request(within)
	a.latency = time.Since(began)
	a.late = !late.Stop()
	err = failure(ctx, err)
	a.verdict, a.retryAfter = judge(kind, err)
	r.limiter.release(kind, a)
	r.metrics.request(verb, err, a.latency)
	return err
}

// judge tells what an answer says about the state of the API that serves a kind.
func judge(kind schema.GroupResource, err error) (verdict, time.Duration) {
	switch {
	case errors.Is(err, errNoContact), errors.Is(err, errRewound): // it was not sent
		return noVerdict, 0
	case refusedByWebhook(err): // its word about one object
		return fine, 0
	case apierrors.IsTooManyRequests(err):
		seconds, _ := apierrors.SuggestsClientDelay(err)
		if isServers(kind, err) {
			return throttledByServer, time.Duration(seconds) * time.Second
		}
		return throttledByKind, time.Duration(seconds) * time.Second
	}
	switch outcomeOf(err) {
	case failed:
		return unanswered, 0
	case cancelled:
		return noVerdict, 0
	}
	return fine, 0
}

// isServers tells whether a 429 comes from the API server's own limits, which are for all kinds: those answer
// in plain text, where an API, and its storage, sends a Status. Behind a group that may be aggregated, another
// server may have said the same; then every kind finds out for itself. The headers of priority and fairness
// do not tell: the API server puts them on what it passes on, too.
func isServers(kind schema.GroupResource, err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	builtIn := !strings.Contains(kind.Group, ".") || strings.HasSuffix(kind.Group, ".k8s.io")
	return builtIn && slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}

// failure keeps what a broken connection says from being taken for our own end: whoever is asked may have
// cancelled something too.
func failure(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		return errors.New(err.Error())
	}
	return err
}

// doForMetadata asks for the metadata of the object in the answer. An answer without a uid is none: nobody
// could say which object it is about.
func (r *requester) doForMetadata(ctx context.Context, verb string, kind schema.GroupResource, req *rest.Request) (*metav1.PartialObjectMetadata, error) {
	result, err := r.do(ctx, verb, kind, req.SetHeader("Accept", acceptMetadata))
	if err != nil {
		return nil, err
	}
	m, err := decode[metav1.PartialObjectMetadata](result)
	if err != nil {
		return nil, fmt.Errorf("decode the answer: %w", err)
	}
	if m.UID == "" {
		return nil, errors.New("decode the answer: it has no uid")
	}
	return m, nil
}

// decode reads an answer as M: it is one, or a whole object of a kind that only its API knows, in JSON, of
// which M is a part.
func decode[M any](result rest.Result) (*M, error) {
	obj, err := result.Get()
	switch m, ok := any(obj).(*M); {
	case err == nil && !ok:
		return nil, fmt.Errorf("metadata expected, not %T", obj)
	case !runtime.IsNotRegisteredError(err):
		return m, err
	}
	raw, err := result.Raw()
	if err != nil {
		return nil, err
	}
	m := new(M)
	return m, json.Unmarshal(raw, m)
}

// delete sends a DELETE that only the object with the uid of ref answers to, and only at the
// resourceVersion of ref if it has one.
func (r *requester) delete(ctx context.Context, ref graph.Ref, propagation metav1.DeletionPropagation) error {
	gv, err := r.versionOf(ref.Kind)
	if err != nil {
		return err
	}
	preconditions := &metav1.Preconditions{UID: &ref.UID}
	if ref.ResourceVersion != "" {
		preconditions.ResourceVersion = &ref.ResourceVersion
	}
	body, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"},
		PropagationPolicy: &propagation, Preconditions: preconditions,
	})
	if err != nil {
		return fmt.Errorf("encode delete options: %w", err)
	}
	req := object(r.client.Delete(), gv, ref.Kind.Resource, ref.Namespace, ref.Name).
		SetHeader("Content-Type", "application/json").Body(body)
	_, err = r.do(ctx, "delete", ref.Kind, req)
	if !isBusy(err) { // otherwise it was not sent
		r.metrics.deleted(ref.Kind, outcomeOf(err))
	}
	return err
}

// patch sends the metadata that an action wants, for the given resourceVersion; errNoEffect if nothing has come of it. A
// JSON merge patch: the one kind that built-in and custom resources both accept, so there is no 415 to learn from (RB 3.19).
func (r *requester) patch(ctx context.Context, a graph.Action, resourceVersion string) error {
	gv, err := r.versionOf(a.Object.Kind)
	if err != nil {
		return err
	}
	change := map[string]any{"uid": a.Object.UID, "resourceVersion": resourceVersion}
	if a.Verb == graph.Unfinalize {
		change["finalizers"] = orNull(a.Finalizers)
	} else {
		change["ownerReferences"] = orNull(a.Owners)
	}
	body, err := json.Marshal(map[string]any{"metadata": change})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	req := object(r.client.Patch(types.MergePatchType), gv, a.Object.Kind.Resource, a.Object.Namespace, a.Object.Name).Body(body)
	after, err := r.doForMetadata(ctx, "patch", a.Object.Kind, req)
	if err == nil && !tookEffect(a, after) {
		return errNoEffect
	}
	return err
}

// tookEffect tells whether the API server's answer to a patch is as the patch wanted it. The
// resourceVersion would not tell: it stays when the last finalizer goes, and the object with it.
func tookEffect(a graph.Action, after *metav1.PartialObjectMetadata) bool {
	if a.Verb == graph.Unfinalize {
		return !slices.Contains(after.Finalizers, a.Finalizer)
	}
	return len(after.OwnerReferences) == len(a.Owners)
}

// orNull is what makes a merge patch remove the last element of a list.
func orNull[T any](list []T) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

// get reads one object live: a consistent read, not one from a cache.
func (r *requester) get(ctx context.Context, gv schema.GroupVersion, resource, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	return r.doForMetadata(ctx, "get", gv.WithResource(resource).GroupResource(), object(r.client.Get(), gv, resource, namespace, name))
}

// getObject reads the object of an action live.
func (r *requester) getObject(ctx context.Context, ref graph.Ref) (*metav1.PartialObjectMetadata, error) {
	gv, err := r.versionOf(ref.Kind)
	if err != nil {
		return nil, err
	}
	return r.get(ctx, gv, ref.Kind.Resource, ref.Namespace, ref.Name)
}

// getWhole reads one object live, with all that is in it.
func (r *requester) getWhole(ctx context.Context, ref graph.Ref) (map[string]any, *metav1.PartialObjectMetadata, error) {
	gv, err := r.versionOf(ref.Kind)
	if err != nil {
		return nil, nil, err
	}
	result, err := r.do(ctx, "get", ref.Kind, object(r.client.Get(), gv, ref.Kind.Resource, ref.Namespace, ref.Name).SetHeader("Accept", "application/json"))
	if err != nil {
		return nil, nil, err
	}
	raw, err := result.Raw()
	if err != nil {
		return nil, nil, err
	}
	whole, m := map[string]any{}, &metav1.PartialObjectMetadata{}
	if err := errors.Join(utiljson.Unmarshal(raw, &whole), json.Unmarshal(raw, m)); err != nil {
		return nil, nil, fmt.Errorf("decode %s: %w", ref, err)
	}
	if m.UID == "" {
		return nil, nil, errors.New("decode the answer: it has no uid")
	}
	return whole, m, nil
}

// list reads what a namespace holds of a kind, live and whole.
func (r *requester) list(ctx context.Context, kind schema.GroupResource, namespace string) ([]metav1.PartialObjectMetadata, error) {
	gv, err := r.versionOf(kind)
	if err != nil {
		return nil, err
	}
	var all []metav1.PartialObjectMetadata
	for next := ""; ; {
		req := collection(r.client.Get(), gv, kind.Resource, namespace).SetHeader("Accept", acceptMetadataList).Param("limit", "1000")
		if next != "" {
			req.Param("continue", next)
		}
		result, err := r.do(ctx, "list", kind, req)
		if err != nil {
			return nil, err
		}
		list, err := decode[metav1.PartialObjectMetadataList](result)
		if err != nil {
			return nil, fmt.Errorf("decode the list: %w", err)
		}
		// The kind is empty where the codec knew it.
		if list.Kind != "" && !strings.HasSuffix(list.Kind, "List") || slices.ContainsFunc(list.Items, func(m metav1.PartialObjectMetadata) bool { return m.UID == "" }) {
			return nil, fmt.Errorf("decode the list: a %s is no list of objects with uids", list.Kind)
		}
		all = append(all, list.Items...)
		if next = list.Continue; next == "" {
			return all, nil
		}
	}
}

// deleteCollection deletes what a namespace holds of a kind, unseen.
func (r *requester) deleteCollection(ctx context.Context, kind schema.GroupResource, namespace string) error {
	gv, err := r.versionOf(kind)
	if err != nil {
		return err
	}
	_, err = r.do(ctx, "deletecollection", kind, collection(r.client.Delete(), gv, kind.Resource, namespace).
		Param("propagationPolicy", string(metav1.DeletePropagationBackground)))
	return err
}

// look answers a claim by a live read of the place that it names.
func (r *requester) look(ctx context.Context, c graph.Claim) (graph.Answer, string) {
	gv, err := schema.ParseGroupVersion(c.APIVersion)
	if err != nil {
		return graph.Unanswered, err.Error()
	}
	namespace := ""
	if c.Namespaced {
		namespace = c.Namespace
	}
	m, err := r.get(ctx, gv, c.Resource.Resource, namespace, c.Name)
	switch {
	case err == nil && m.UID == c.UID:
		return graph.Present, ""
	case err == nil:
		return graph.Absent, ""
	case noSuchObject(err, c.Resource, c.Name):
		return graph.Absent, ""
	case apierrors.IsForbidden(err) && !refusedByWebhook(err):
		return graph.Denied, err.Error()
	}
	return graph.Unanswered, err.Error()
}

// noSuchObject tells whether an API server that knows the kind said that it has no object of that kind and
// name. Every other 404 says less: a path that is not served (the CRD went), a namespace that is not there,
// or a webhook that chose the code (RB 3.18).
func noSuchObject(err error, kind schema.GroupResource, name string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || refusedByWebhook(err) {
		return false
	}
	d := status.Status().Details
	if d == nil || d.Name != name || slices.ContainsFunc(d.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	}) {
		return false
	}
	said := schema.GroupResource{Group: d.Group, Resource: d.Kind}
	twin, has := twins[kind]
	return said == kind || has && said == twin
}
