package ask

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/weir-dev/weir/controller/words"
)

// forwarded is a connection to a port of a pod, through the API server and the kubelet. No port of
// this machine is opened for it, which others here could use.
type forwarded struct {
	host string // as the pod knows itself
	conn httpstream.Connection
	data httpstream.Stream
	said chan error // what the kubelet says, once, at the end
	stop func() bool
	wg   sync.WaitGroup
}

// refusedError is what the kubelet says of a port that it could not connect to.
type refusedError struct{ message string }

func (e *refusedError) Error() string { return words.Printable(e.message) }

// mostSaid is how much of what a kubelet says is read.
const mostSaid = 1 << 10

// forward opens a connection to a port of a pod. It ends with ctx.
func forward(ctx context.Context, config *rest.Config, core rest.Interface, namespace, pod string, port uint16) (*forwarded, error) {
	type dialed struct {
		conn httpstream.Connection
		err  error
	}
	done := make(chan dialed, 1)
	go func() { // dialers know no context
		conn, err := dialPod(config, core, namespace, pod)
		if ctx.Err() != nil && err == nil {
			_ = conn.Close() // no caller waits for it any more
		}
		done <- dialed{conn, err}
	}()
	var d dialed
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case d = <-done:
	}
	if d.err != nil {
		return nil, d.err
	}
	f := &forwarded{host: "127.0.0.1:" + strconv.Itoa(int(port)), conn: d.conn, said: make(chan error, 1)}
	f.stop = context.AfterFunc(ctx, func() { _ = f.conn.Close() })
	if err := f.open(port); err != nil {
		f.Close()
		return nil, fmt.Errorf("forward port %d: %w", port, err)
	}
	return f, nil
}

// dialPod asks the API server to forward ports of a pod: by a WebSocket, and where that does not
// come about, be it because the API server or a proxy before it does not know how, by SPDY.
func dialPod(config *rest.Config, core rest.Interface, namespace, pod string) (httpstream.Connection, error) {
	url := core.Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	socket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, config)
	if err != nil {
		return nil, err
	}
	conn, _, first := socket.Dial(portforward.PortForwardProtocolV1Name)
	if first == nil {
		return conn, nil
	}
	if !httpstream.IsUpgradeFailure(first) && !httpstream.IsHTTPSProxyError(first) {
		return nil, first
	}
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	conn, _, err = spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url).Dial(portforward.PortForwardProtocolV1Name)
	if err == nil {
		return conn, nil
	}
	// Of the second only a text is left. The first tells what it was, if it was a right that is
	// missing.
	var upgrade *httpstream.UpgradeFailureError
	if errors.As(first, &upgrade) && apierrors.IsForbidden(upgrade.Cause) {
		return nil, upgrade.Cause
	}
	return nil, err
}

// open makes the two streams that are one connection: what the kubelet says of it, and what goes
// through it.
func (f *forwarded) open(port uint16) error {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(int(port)))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	errs, err := f.conn.CreateStream(headers)
	if err != nil {
		return err
	}
	if err := errs.Close(); err != nil { // it is only read
		return err
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	if f.data, err = f.conn.CreateStream(headers); err != nil {
		return err
	}
	f.wg.Go(func() {
		text, _ := io.ReadAll(io.LimitReader(errs, mostSaid)) // the connection may end before it
		if len(text) > 0 {
			f.said <- &refusedError{string(text)}
		}
		close(f.said)
	})
	return nil
}

// Close ends the connection.
func (f *forwarded) Close() {
	f.stop()
	_ = f.conn.Close() // all that was wanted was read
	f.wg.Wait()
}

// get asks for a path, without credentials.
func (f *forwarded) get(ctx context.Context, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.host+path, nil)
	if err != nil {
		return nil, err
	}
	req.Close = true
	if err = req.Write(f.data); err == nil {
		var resp *http.Response
		if resp, err = http.ReadResponse(bufio.NewReader(f.data), req); err == nil {
			return resp, nil
		}
	}
	select { // why there is none, the kubelet says before it ends the connection
	case said := <-f.said:
		if said != nil {
			return nil, said
		}
	case <-ctx.Done():
	}
	return nil, fmt.Errorf("the connection ended before an answer: %w", err)
}
