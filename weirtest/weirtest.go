// Package weirtest gives tests of operators the garbage collector and the namespace controller that
// envtest does not have. It runs the weir binary beside envtest's API server:
//
//	cfg, _ := testEnv.Start()
//	gc := weirtest.Start(t, cfg)
//	…
//	gc.DeleteAndWait(ctx, owner) // and all that goes with it is gone
//
// The binary is the one that WEIR_BIN names, or weir in KUBEBUILDER_ASSETS or on the PATH; go
// install github.com/weir-dev/weir@latest makes one.
package weirtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// startsWithin is how long weir may take to list all kinds of an API server.
const startsWithin = time.Minute

// Collector is a running weir.
type Collector struct {
	cfg     *rest.Config
	client  *http.Client
	process *exec.Cmd
	ended   chan struct{}
	dir     string
	log     *os.File
	tb      testing.TB // nil: the methods panic
}

// Object is an object as weir knows it.
type Object struct {
	Group, Version, Resource, Namespace, Name string

	UID        types.UID
	Finalizers []string
	// Why is why the object is there.
	Why string
}

// String returns the resource and the name: configmaps shop/settings.
func (o Object) String() string {
	kind := o.Resource
	if o.Group != "" {
		kind += "." + o.Group
	}
	if o.Namespace == "" {
		return kind + " " + o.Name
	}
	return kind + " " + o.Namespace + "/" + o.Name
}

// Start runs weir until the test ends, and returns when weir has seen all objects. An error here or
// in the methods of Collector ends the test.
func Start(tb testing.TB, cfg *rest.Config) *Collector {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startsWithin)
	defer cancel()
	c, err := Run(ctx, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	c.tb = tb
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Log(c.lastLines())
		}
		if err := c.Close(); err != nil {
			tb.Error(err)
		}
	})
	return c
}

// Run is Start without a test, such as in TestMain. The methods of its Collector panic on an error.
func Run(ctx context.Context, cfg *rest.Config) (*Collector, error) {
	binary, err := find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "weir") // a socket's path has to be short
	if err != nil {
		return nil, err
	}
	c := &Collector{cfg: cfg, dir: dir, ended: make(chan struct{})}
	if err := c.start(ctx, binary); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func find() (string, error) {
	if path := os.Getenv("WEIR_BIN"); path != "" {
		return path, nil
	}
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		if path := filepath.Join(assets, "weir"); isFile(path) {
			return path, nil
		}
	}
	path, err := exec.LookPath("weir")
	if err != nil {
		return "", errors.New("weir is not there: set WEIR_BIN, or put it into KUBEBUILDER_ASSETS or on the PATH " +
			"(go install github.com/weir-dev/weir@latest)")
	}
	return path, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func (c *Collector) start(ctx context.Context, binary string) error {
	kubeconfig := filepath.Join(c.dir, "kubeconfig")
	if err := clientcmd.WriteToFile(kubeconfigOf(c.cfg), kubeconfig); err != nil {
		return fmt.Errorf("write a kubeconfig: %w", err)
	}
	var err error
	if c.log, err = os.Create(filepath.Join(c.dir, "log")); err != nil {
		return err
	}
	socket := filepath.Join(c.dir, "s")
	c.process = exec.Command(binary, "gc", "--kubeconfig", kubeconfig, "--control", "unix:"+socket)
	c.process.Stdout, c.process.Stderr = c.log, c.log
	if err := c.process.Start(); err != nil {
		c.process = nil
		return err
	}
	go func() {
		defer close(c.ended)
		_ = c.process.Wait() // the log says what happened
	}()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	c.client = &http.Client{Transport: &http.Transport{DialContext: dial}}
	for {
		err := c.get(ctx, "/ready", nil)
		if err == nil {
			return nil
		}
		select {
		case <-c.ended:
			return fmt.Errorf("%s has ended:\n%s", binary, c.lastLines())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w\n%s", binary, err, c.lastLines())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// kubeconfigOf returns a rest.Config as a kubeconfig.
func kubeconfigOf(cfg *rest.Config) clientcmdapi.Config {
	cluster := &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData,
		CertificateAuthority: cfg.CAFile, InsecureSkipTLSVerify: cfg.Insecure, TLSServerName: cfg.ServerName}
	user := &clientcmdapi.AuthInfo{ClientCertificateData: cfg.CertData, ClientCertificate: cfg.CertFile,
		ClientKeyData: cfg.KeyData, ClientKey: cfg.KeyFile, Token: cfg.BearerToken, TokenFile: cfg.BearerTokenFile,
		Username: cfg.Username, Password: cfg.Password}
	const name = "weirtest"
	return clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: cluster}, AuthInfos: map[string]*clientcmdapi.AuthInfo{name: user},
		Contexts: map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}}, CurrentContext: name,
	}
}

// Close stops weir.
func (c *Collector) Close() error {
	if c.process != nil {
		if err := c.process.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		select {
		case <-c.ended:
		case <-time.After(5 * time.Second):
			_ = c.process.Process.Kill() // it is joined below
			<-c.ended
		}
	}
	if c.client != nil {
		c.client.CloseIdleConnections()
	}
	if c.log != nil {
		_ = c.log.Close() // nothing reads it any more
	}
	return os.RemoveAll(c.dir)
}

// WaitIdle returns when all consequences of earlier writes are done. It returns the objects that
// still terminate: they wait for finalizers that the collectors do not remove.
func (c *Collector) WaitIdle(ctx context.Context) []Object {
	c.helper()
	var idle struct{ Waiting []Object }
	if err := c.get(ctx, "/idle", &idle); err != nil {
		c.fail(fmt.Errorf("wait until nothing is left to collect: %w", err))
	}
	return idle.Waiting
}

// DeleteAndWait deletes an object in the background, and returns when all its dependents are gone,
// or wait for others: see WaitIdle.
func (c *Collector) DeleteAndWait(ctx context.Context, obj metav1.Object) []Object {
	c.helper()
	o := c.find(ctx, obj)
	client, err := dynamic.NewForConfig(c.cfg)
	if err == nil {
		background := metav1.DeletePropagationBackground
		resource := schema.GroupVersionResource{Group: o.Group, Version: o.Version, Resource: o.Resource}
		err = client.Resource(resource).Namespace(o.Namespace).Delete(ctx, o.Name,
			metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: metav1.NewUIDPreconditions(string(o.UID))})
	}
	if err != nil {
		c.fail(fmt.Errorf("delete %s: %w", o, err))
	}
	return c.WaitIdle(ctx)
}

// Why returns why an object is there: which of its owners holds it, or what it waits for.
func (c *Collector) Why(ctx context.Context, obj metav1.Object) string {
	c.helper()
	c.WaitIdle(ctx)
	return c.find(ctx, obj).Why
}

// find waits until weir knows an object.
func (c *Collector) find(ctx context.Context, obj metav1.Object) (o Object) {
	c.helper()
	for {
		err := c.get(ctx, "/objects/"+string(obj.GetUID()), &o)
		if err == nil {
			return o
		}
		select {
		case <-c.ended:
			c.fail(errors.New("weir has ended"))
		case <-ctx.Done():
			c.fail(fmt.Errorf("find %q: %w: %w", obj.GetName(), ctx.Err(), err))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (c *Collector) helper() {
	if c.tb != nil {
		c.tb.Helper()
	}
}

func (c *Collector) fail(err error) {
	c.helper()
	if c.tb == nil {
		panic(err)
	}
	c.tb.Fatal(err)
}

func (c *Collector) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://weir"+path, nil)
	if err != nil {
		return err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK:
		return errors.New(strings.TrimSpace(string(body)))
	case into == nil:
		return nil
	}
	return json.Unmarshal(body, into)
}

// lastLines returns the last lines of the log.
func (c *Collector) lastLines() string {
	if c.log == nil {
		return ""
	}
	text, err := os.ReadFile(c.log.Name())
	if err != nil {
		return err.Error()
	}
	const most = 20
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-most):], []byte("\n")))
}
