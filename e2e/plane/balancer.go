package plane

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/tools/clientcmd"
)

// A Balancer hands connections on to servers by turns, as a load balancer does that looks into none
// of them.
type Balancer struct {
	// Strict: what a server does not take is lost, as by a Service. To be set before there are servers.
	Strict bool

	listener net.Listener

	mu    sync.Mutex
	hosts []string // where new connections go
	turn  int
	open  map[net.Conn]string // the servers' ends, and whose they are
}

// NewBalancer listens until ctx ends. Hosts are given as in configs.
func NewBalancer(ctx context.Context, hosts ...string) (*Balancer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for API servers: %w", err)
	}
	b := &Balancer{listener: listener, open: map[net.Conn]string{}}
	b.To(hosts...)
	go b.serve()
	context.AfterFunc(ctx, func() { listener.Close(); b.To() })
	return b, nil
}

// Host is where it listens, under a name of this machine.
func (b *Balancer) Host(name string) string {
	return fmt.Sprintf("%s:%d", name, b.listener.Addr().(*net.TCPAddr).Port)
}

// Kubeconfig writes one beside another that reaches the API servers by way of the balancer, and
// returns its path.
func (b *Balancer) Kubeconfig(path string) (string, error) {
	k, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return "", fmt.Errorf("read a kubeconfig: %w", err)
	}
	for _, cluster := range k.Clusters {
		cluster.Server = "https://" + b.listener.Addr().String()
	}
	path += ".balanced"
	if err := clientcmd.WriteToFile(*k, path); err != nil {
		return "", fmt.Errorf("write a kubeconfig: %w", err)
	}
	return path, nil
}

// New has new connections go to these servers. Those to others go on.
func (b *Balancer) New(hosts ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hosts = nil
	for _, h := range hosts {
		b.hosts = append(b.hosts, strings.TrimPrefix(h, "https://"))
	}
}

// To is New, and ends connections to others.
func (b *Balancer) To(hosts ...string) {
	b.New(hosts...)
	b.mu.Lock()
	defer b.mu.Unlock()
	for c, host := range b.open {
		if !slices.Contains(b.hosts, host) {
			c.Close()
		}
	}
}

// Connections counts those that are open to a server.
func (b *Balancer) Connections(host string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, h := range b.open {
		if "https://"+h == host {
			n++
		}
	}
	return n
}

func (b *Balancer) serve() {
	for {
		client, err := b.listener.Accept()
		if err != nil {
			return // it is closed
		}
		go b.pass(client)
	}
}

// dial connects to whose turn it is, or to another that answers.
func (b *Balancer) dial() net.Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.hosts {
		host := b.hosts[b.turn%len(b.hosts)]
		b.turn++
		if c, err := net.Dial("tcp", host); err == nil {
			b.open[c] = host
			return c
		}
		if b.Strict {
			break
		}
	}
	return nil
}

func (b *Balancer) pass(client net.Conn) {
	defer client.Close()
	server := b.dial()
	if server == nil {
		return
	}
	go func() {
		_, _ = io.Copy(server, client) // either end may go at any time
		server.Close()
	}()
	_, _ = io.Copy(client, server)
	server.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, server)
}
