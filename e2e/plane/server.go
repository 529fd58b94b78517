package plane

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// A Server is an API server beside the plane's own, on the same etcd, with the same certificates
// and keys. Whatever one writes, the other serves; which kinds it serves, and how late its watches
// are, is its own.
type Server struct {
	*Child
	// Config is the cluster administrator's, to this server.
	Config *rest.Config
	// Lag can have this server's watch caches stay as they are.
	Lag   *Lag
	plane *Plane
}

// AddAPIServer starts one more API server, and returns when it is ready. Flags come last, so that
// they win. It ends with the plane.
func (p *Plane) AddAPIServer(ctx context.Context, flags ...string) (*Server, error) {
	path, err := p.binary(ctx, APIServer)
	if err != nil {
		return nil, err
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	lag, err := newLag(p.etcdURL())
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.lags = append(p.lags, lag)
	p.mu.Unlock()
	name := fmt.Sprintf("%s-%d", APIServer, port)
	args, err := p.apiServerFlags(port, lag.url(), filepath.Join(p.Dir, name+"-audit.log"))
	if err != nil {
		return nil, err
	}
	s := &Server{
		Child:  Command(name, path, filepath.Join(p.Dir, name+".log"), append(args, flags...)...),
		Config: rest.CopyConfig(p.Config), Lag: lag, plane: p,
	}
	s.Config.Host = "https://" + net.JoinHostPort(p.opts.address(), strconv.Itoa(port))
	if err := s.Start(ctx); err != nil {
		return nil, err
	}
	return s, p.tellApart(ctx, name)
}

// Start runs it, for the first time or again, and returns when it is ready.
func (s *Server) Start(ctx context.Context) error {
	if err := s.plane.start(ctx, s.Child); err != nil {
		return err
	}
	return s.plane.awaitServer(ctx, s.Child, s.Config)
}

// tellApart writes the Lease by which API servers are counted. They are named by their hosts, so
// that two of one machine share one.
func (p *Plane) tellApart(ctx context.Context, name string) error {
	client, err := kubernetes.NewForConfig(p.Config)
	if err != nil {
		return fmt.Errorf("write the Lease of %s: %w", name, err)
	}
	_, err = client.CoordinationV1().Leases(metav1.NamespaceSystem).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"apiserver.kubernetes.io/identity": "kube-apiserver"}},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new(name), LeaseDurationSeconds: new(int32(3600)), RenewTime: &metav1.MicroTime{Time: time.Now()},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("write the Lease of %s: %w", name, err)
	}
	return nil
}
