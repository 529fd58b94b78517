package metaonly

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// accept asks for metadata alone, in what this package reads; JSON is for servers that have nothing else.
const accept = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// client is a metadata client whose watches of a whole kind decode no more than Weir looks at.
type client struct {
	metadata.Interface
	rest *rest.RESTClient
}

// New has watches of whole kinds sent by h, and all else by m. A watch brings of an object that is not being deleted its name, namespace,
// uid, resourceVersion, owner references and finalizers, and of one that is, all but managedFields.
func New(m metadata.Interface, config *rest.Config, h *http.Client) (metadata.Interface, error) {
	config = metadata.ConfigFor(config)
	config.GroupVersion, config.APIPath = &schema.GroupVersion{}, "/never" // every request names its own
	config.NegotiatedSerializer = serializer{metainternalversionscheme.Codecs.WithoutConversion()}
	r, err := rest.RESTClientForConfigAndClient(config, h)
	if err != nil {
		return nil, fmt.Errorf("make a client for watches: %w", err)
	}
	return &client{m, r}, nil
}

// Connections makes what sends watches by connections of its own: events come by them up to 10 ms later than they could, and for that
// they cost less. Answers to single requests should not wait so long.
func Connections(config *rest.Config) (*http.Client, error) {
	config = metadata.ConfigFor(config)
	if config.Dial == nil {
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
	return &getter{c.Interface.Resource(kind), c.rest, kind}
}

type getter struct {
	metadata.Getter
	rest *rest.RESTClient
	kind schema.GroupVersionResource
}

// Watch implements metadata.ResourceInterface.
func (g *getter) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	var timeout time.Duration
	if o.TimeoutSeconds != nil {
		timeout = time.Duration(*o.TimeoutSeconds) * time.Second
	}
	o.Watch = true
	path := []string{"apis", g.kind.Group, g.kind.Version, g.kind.Resource}
	if g.kind.Group == "" {
		path = []string{"api", g.kind.Version, g.kind.Resource}
	}
	return g.rest.Get().AbsPath(path...).SetHeader("Accept", accept).SpecificallyVersionedParams(&o, metav1.ParameterCodec, metav1.Unversioned).Timeout(timeout).Watch(ctx)
}

// serializer is client-go's, but for what a watch brings as protobuf.
type serializer struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (s serializer) SupportedMediaTypes() []runtime.SerializerInfo {
	all := s.NegotiatedSerializer.SupportedMediaTypes()
	types := make([]runtime.SerializerInfo, len(all))
	for i, t := range all {
		if t.MediaType == runtime.ContentTypeProtobuf {
			stream := *t.StreamSerializer
			stream.Serializer = events{stream.Serializer}
			t.Serializer, t.StreamSerializer = objects{t.Serializer}, &stream
		}
		types[i] = t
	}
	return types
}
