package metaonly

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Accept asks for metadata alone. Plain JSON is for servers that have nothing else, and then send
// whole objects.
const Accept = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
	"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// Client lists and watches the metadata of objects. List pages are decoded object by object.
type Client struct{ lists, watches *rest.RESTClient }

// New returns a client that sends watches by one HTTP client, and all else by another.
func New(config *rest.Config, h, watches *http.Client) (*Client, error) {
	config = metadata.ConfigFor(config)
	config.GroupVersion, config.APIPath = &schema.GroupVersion{}, "/never" // every request names its own
	config.NegotiatedSerializer = metainternalversionscheme.Codecs.WithoutConversion()
	config.QPS, config.Burst, config.RateLimiter = -1, 0, nil
	byLists, err := rest.RESTClientForConfigAndClient(config, h)
	if err != nil {
		return nil, fmt.Errorf("make a client for lists: %w", err)
	}
	byWatches, err := rest.RESTClientForConfigAndClient(config, watches)
	if err != nil {
		return nil, fmt.Errorf("make a client for watches: %w", err)
	}
	return &Client{byLists, byWatches}, nil
}

// Connections returns an HTTP client for watches, with connections of its own. Events come up to 20
// ms later by these, and cost less. Single requests should not wait so long.
func Connections(config *rest.Config) (*http.Client, error) {
	config = rest.CopyConfig(config)
	if config.Dial == nil { // with a function of its own it shares client-go's connections with no other
		config.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	config.Dial = gathering(config.Dial)
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make connections for watches: %w", err)
	}
	return h, nil
}

// Kind is the objects of a kind, in a namespace or, without one, in all.
type Kind struct {
	client    *Client
	kind      schema.GroupVersionResource
	namespace string
}

// Kind returns the objects of a kind, in a namespace or, without one, in all.
func (c *Client) Kind(kind schema.GroupVersionResource, namespace string) *Kind {
	return &Kind{c, kind, namespace}
}

// Watch watches the objects.
func (k *Kind) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	var timeout time.Duration
	if o.TimeoutSeconds != nil {
		timeout = time.Duration(*o.TimeoutSeconds) * time.Second
	}
	o.Watch = true
	return At(k.client.watches.Get(), k.kind, k.namespace).SetHeader("Accept", Accept).
		SpecificallyVersionedParams(&o, metav1.ParameterCodec, metav1.Unversioned).Timeout(timeout).Watch(ctx)
}

// nothing is the name of an object that does not exist.
const nothing = "weir-asks-for-nothing"

// Reach returns nil if the watch cache of the kind has reached a resourceVersion. It asks in a
// namespace, unless the kind is in none, on the connections of watches, and once: the API server
// waits for its cache, and then answers that the resourceVersion is too large. That the object does
// not exist is the expected answer.
func (k *Kind) Reach(ctx context.Context, namespace, resourceVersion string) error {
	o := metav1.GetOptions{ResourceVersion: resourceVersion}
	err := At(k.client.watches.Get(), k.kind, namespace).Name(nothing).SetHeader("Accept", Accept).
		SpecificallyVersionedParams(&o, metav1.ParameterCodec, metav1.Unversioned).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// At addresses a request to the objects of a kind, in a namespace or, without one, in all.
// client-go's retries are off: they would hide 429s from who adapts to them, and wait meanwhile.
func At(r *rest.Request, kind schema.GroupVersionResource, namespace string) *rest.Request {
	path := []string{"/apis", kind.Group, kind.Version}
	if kind.Group == "" {
		path = []string{"/api", kind.Version}
	}
	return r.AbsPath(path...).NamespaceIfScoped(namespace, namespace != "").Resource(kind.Resource).MaxRetries(0)
}
