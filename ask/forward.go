package ask

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// forward opens a local port that leads to a port of a pod, through the API server and the kubelet,
// until ctx ends. It tries a WebSocket, and SPDY if the API server or a proxy does not support
// that.
func forward(ctx context.Context, config *rest.Config, core rest.Interface, namespace, pod string, port uint16) (
	address string, err error) {
	url := core.Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	socket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, config)
	if err != nil {
		return "", err
	}
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return "", err
	}
	older := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	dialer := portforward.NewFallbackDialerForStreaming(socket, older, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	ready, ended := make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.NewOnAddressesForStreaming(dialer, []string{"127.0.0.1"},
		[]string{fmt.Sprintf(":%d", port)}, ctx.Done(), ready, io.Discard, io.Discard)
	if err != nil {
		return "", err
	}
	go func() { ended <- forwarder.ForwardPorts() }() // it takes no context
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case err := <-ended:
		return "", err
	case <-ready:
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local), nil
}
