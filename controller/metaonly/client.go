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

// accept asks for metadata alone; JSON is for servers that have nothing else.
const accept = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
	"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// client is a metadata client whose list pages are decoded object by object, and whose lists and
// watches are sent once.
type client struct {
	metadata.Interface
	lists, watches *rest.RESTClient
}

// New returns a client that sends watches by one HTTP client, and all else by another.
func New(config *rest.Config, h, watches *http.Client) (metadata.Interface, error) {
	m, err := metadata.NewForConfigAndClient(config, h)
	if err != nil {
		return nil, fmt.Errorf("make a metadata client: %w", err)
	}
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
	return &client{m, byLists, byWatches}, nil
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

// Resource implements metadata.Interface.
func (c *client) Resource(kind schema.GroupVersionResource) metadata.Getter {
	of := c.Interface.Resource(kind)
	return &getter{ResourceInterface: of, all: of, client: c, kind: kind}
}

// getter is a kind, in a namespace or, without one, in all.
type getter struct {
	metadata.ResourceInterface
	all       metadata.Getter
	client    *client
	kind      schema.GroupVersionResource
	namespace string
}

// Namespace implements metadata.Getter.
func (g *getter) Namespace(namespace string) metadata.ResourceInterface {
	in := *g
	in.ResourceInterface, in.namespace = g.all.Namespace(namespace), namespace
	return &in
}

// Watch implements metadata.ResourceInterface.
func (g *getter) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	var timeout time.Duration
	if o.TimeoutSeconds != nil {
		timeout = time.Duration(*o.TimeoutSeconds) * time.Second
	}
	o.Watch = true
	return g.get(g.client.watches, accept).
		SpecificallyVersionedParams(&o, metav1.ParameterCodec, metav1.Unversioned).Timeout(timeout).Watch(ctx)
}

// nothing is the name of an object that does not exist.
const nothing = "weir-asks-for-nothing"

// Reach returns nil if the watch cache of a kind has reached a resourceVersion. It asks on the
// connections of watches, and once: the API server waits for its cache, and then answers that the
// resourceVersion is too large. That the object does not exist is the expected answer.
func Reach(ctx context.Context, kind metadata.Getter, namespace, resourceVersion string) (err error) {
	o := metav1.GetOptions{ResourceVersion: resourceVersion}
	in := kind.Namespace(namespace)
	if g, ok := in.(*getter); ok {
		err = g.get(g.client.watches, accept).Name(nothing).
			SpecificallyVersionedParams(&o, metav1.ParameterCodec, metav1.Unversioned).Do(ctx).Error()
	} else {
		_, err = in.Get(ctx, nothing, o)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// get returns a request for the kind.
func (g *getter) get(by *rest.RESTClient, types string) *rest.Request {
	path := []string{"apis", g.kind.Group, g.kind.Version}
	if g.kind.Group == "" {
		path = []string{"api", g.kind.Version}
	}
	return by.Get().AbsPath(path...).NamespaceIfScoped(g.namespace, g.namespace != "").
		Resource(g.kind.Resource).SetHeader("Accept", types).MaxRetries(0)
}
