//go:build full

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// newReplicated is a cluster of its own with weir's controller and two replicas of its webhook.
func newReplicated(t *testing.T, m mode, o plane.Options) (*fixture, *service) {
	t.Helper()
	w := newCluster(t, o)
	if err := installCRDs(t.Context(), w.plane); err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	service := newService(t)
	kubeconfig := w.kubeconfigOf(hookUser)
	for i := range 2 {
		port, err := plane.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		hook := w.runWeir(hookOptions(w.plane, kubeconfig, fmt.Sprintf("hook-%d", i), service.url, port, "--shutdown-delay", "3s"))
		service.replicas = append(service.replicas, replica{hook, port})
	}
	service.serve()
	var err error
	if w.weir, err = startController(ctx, w.plane, m, service.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.weir.Kill)
	w.hook, w.mode = service.replicas[0].Process, m
	return w, service
}

// service does what a Service does: new connections go to replicas that are ready,
// in turns, and those that there are stay where they are.
type service struct {
	t        *testing.T
	listener net.Listener
	url      string
	replicas []replica
	ready    []atomic.Bool
	next     int
}

type replica struct {
	*weir.Process
	port int
}

// asked is how many reviews it has answered since it started.
func (r replica) asked(t *testing.T) float64 {
	t.Helper()
	m, err := r.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m.Sum("weir_webhook_requests_total") - m.Sum("weir_webhook_requests_total", "webhook", canaryHook)
}

func newService(t *testing.T) *service {
	t.Helper()
	port, err := plane.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return &service{t: t, listener: l, url: fmt.Sprintf("https://localhost:%d", port)}
}

// serve follows the readiness of the replicas and forwards until the test ends.
func (s *service) serve() {
	s.ready = make([]atomic.Bool, len(s.replicas))
	ctx, end := context.WithCancel(context.WithoutCancel(s.t.Context()))
	var parts sync.WaitGroup
	for i, r := range s.replicas {
		s.ready[i].Store(true)
		parts.Go(func() {
			// As often as kubelets and the endpoints controller are, taken together, at their best.
			_ = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
				s.ready[i].Store(r.Ready(ctx) == nil)
				return false, nil
			})
		})
	}
	parts.Go(func() {
		for {
			conn, err := s.listener.Accept()
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					s.t.Error(err)
				}
				return
			}
			port := s.pick()
			parts.Go(func() { forward(ctx, conn, port) })
		}
	})
	s.t.Cleanup(func() {
		end()
		_ = s.listener.Close() // what was accepted ends with ctx
		parts.Wait()
	})
}

// pick is the port of a ready replica; without one, that of any.
func (s *service) pick() int {
	for range s.replicas {
		s.next = (s.next + 1) % len(s.replicas)
		if s.ready[s.next].Load() {
			break
		}
	}
	return s.replicas[s.next].port
}

// forward passes on what comes, both ways, until one side ends.
func forward(ctx context.Context, from net.Conn, port int) {
	defer from.Close()
	to, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return // as of a pod that is not there
	}
	defer to.Close()
	stop := context.AfterFunc(ctx, func() { _ = errors.Join(from.Close(), to.Close()) })
	defer stop()
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			_, _ = io.Copy(pair[1], pair[0]) // its end is what is waited for
			_ = errors.Join(from.Close(), to.Close())
		})
	}
	both.Wait()
}
