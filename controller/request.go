package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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
	metrics *metrics
	// kinds are how each resource is written: in which version, and what its kind is called.
	kinds atomic.Pointer[map[schema.GroupResource]schema.GroupVersionKind]
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
	return &requester{client: client, limiter: l, metrics: m}, nil
}

// serve remembers how each resource is written.
func (r *requester) serve(resources []graph.Resource) {
	kinds := make(map[schema.GroupResource]schema.GroupVersionKind, len(resources))
	for _, res := range resources {
		kinds[res.GroupResource()] = schema.GroupVersionKind{Group: res.Group, Version: res.Version, Kind: res.Kind}
	}
	r.kinds.Store(&kinds)
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

const acceptMetadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
	"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

const acceptMetadataList = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," +
	"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

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

func (r *requester) do(ctx context.Context, verb string, req *rest.Request) (rest.Result, error) {
	if err := r.limiter.acquire(ctx); err != nil {
		return rest.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	began := time.Now()
	result := req.Do(ctx)
	latency := time.Since(began)
	err := result.Error()
	after, throttled := apierrors.SuggestsClientDelay(err)
	throttled = throttled && apierrors.IsTooManyRequests(err) && !refusedByWebhook(err)
	r.limiter.release(latency, throttled, time.Duration(after)*time.Second)
	r.metrics.request(verb, err, latency)
	return result, err
}

// doForMetadata asks for the metadata of the object in the answer.
func (r *requester) doForMetadata(ctx context.Context, verb string, req *rest.Request) (*metav1.PartialObjectMetadata, error) {
	result, err := r.do(ctx, verb, req.SetHeader("Accept", acceptMetadata))
	if err != nil {
		return nil, err
	}
	obj, err := result.Get()
	if err != nil {
		return nil, fmt.Errorf("decode the answer: %w", err)
	}
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, fmt.Errorf("decode the answer: metadata expected, not %T", obj)
	}
	return m, nil
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
	_, err = r.do(ctx, "delete", req)
	return err
}

// patch sends the metadata that an action wants, for the given resourceVersion. A JSON merge patch: the
// one kind that built-in and custom resources both accept, so there is no 415 to learn from (RB 3.19).
func (r *requester) patch(ctx context.Context, a graph.Action, resourceVersion string) (*metav1.PartialObjectMetadata, error) {
	gv, err := r.versionOf(a.Object.Kind)
	if err != nil {
		return nil, err
	}
	change := map[string]any{"uid": a.Object.UID, "resourceVersion": resourceVersion}
	if a.Verb == graph.Unfinalize {
		change["finalizers"] = orNull(a.Finalizers)
	} else {
		change["ownerReferences"] = orNull(a.Owners)
	}
	body, err := json.Marshal(map[string]any{"metadata": change})
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	req := object(r.client.Patch(types.MergePatchType), gv, a.Object.Kind.Resource, a.Object.Namespace, a.Object.Name).Body(body)
	return r.doForMetadata(ctx, "patch", req)
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
	return r.doForMetadata(ctx, "get", object(r.client.Get(), gv, resource, namespace, name))
}

// getObject reads the object of an action live.
func (r *requester) getObject(ctx context.Context, ref graph.Ref) (*metav1.PartialObjectMetadata, error) {
	gv, err := r.versionOf(ref.Kind)
	if err != nil {
		return nil, err
	}
	return r.get(ctx, gv, ref.Kind.Resource, ref.Namespace, ref.Name)
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
		result, err := r.do(ctx, "list", req)
		if err != nil {
			return nil, err
		}
		obj, err := result.Get()
		if err != nil {
			return nil, fmt.Errorf("decode the list: %w", err)
		}
		list, ok := obj.(*metav1.PartialObjectMetadataList)
		if !ok {
			return nil, fmt.Errorf("decode the list: a list of metadata expected, not %T", obj)
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
	_, err = r.do(ctx, "deletecollection", collection(r.client.Delete(), gv, kind.Resource, namespace).
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
	case noSuchObject(err, c.Name):
		return graph.Absent, ""
	}
	return graph.Unanswered, err.Error()
}

// noSuchObject tells whether an API server that knows the kind said that it has no such object. Every
// other 404 says less: a path that is not served (the CRD went), or a webhook that chose the code
// (RB 3.18).
func noSuchObject(err error, name string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || refusedByWebhook(err) {
		return false
	}
	d := status.Status().Details
	return d != nil && d.Name == name && !slices.ContainsFunc(d.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}
