// Command demo shows Weir at work: it starts a control plane without the built-in collectors, lets
// Weir collect in it, and plays a story of deletions with real controllers and running pods.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/plane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	weir := flag.String("weir", "../bin/weir", "the weir binary")
	plugin := flag.String("kubectl-weir", "../bin/kubectl-weir", "the plugin of kubectl")
	flag.Parse()
	if err := run(ctx, *weir, *plugin); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, binary, plugin string) (err error) {
	fmt.Println("Building and starting a control plane without garbage collector and namespace controller.")
	fmt.Println("The first time this compiles Kubernetes, which takes some minutes.")
	p, err := plane.Start(ctx, plane.Options{
		Controllers: plane.WithoutCollectors, Scheduler: true, Kwok: true, Out: os.Stdout,
	})
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := p.Stop(); err == nil {
			err = stopErr
		}
	}()
	p.Config.WarningHandler = rest.NewWarningWriter(os.Stdout, rest.WarningWriterOptions{}) // as kubectl does
	client, err := dynamic.NewForConfig(p.Config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	c := &cluster{client: client, plugin: plugin, kubeconfig: p.Kubeconfig}
	if err := c.installPolicies(ctx, binary); err != nil {
		return err
	}
	w, err := startWeir(ctx, c, p, binary)
	if err != nil {
		return err
	}
	c.log = w.log
	storyCtx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if err := tell(storyCtx, c); err != nil {
		return err
	}
	page, end, err := startPage(p, plugin)
	if err != nil {
		return err
	}
	defer end()
	fmt.Printf(`
Look further:
  export KUBECONFIG=%s
  kubectl create deployment hello --image=hello --replicas=3     its pods run on a node that only says so
  bin/kubectl-weir plan deployment hello     what a delete would do; also why, tree, pending, orphans
  %s     all of that as a page, which follows the cluster
  kubectl delete deployment hello --cascade=foreground
  bin/kubectl-weir history -A     what was collected, and because of which object
  %s        the ownership graph (?uid= for a part of it)
  %s        metrics
  %s        what Weir did, and why
`, p.Kubeconfig, page, w.url+"/debug/controllers/garbage-collector-controller/graph", w.url+"/metrics", w.log)
	if os.Getenv("DEMO_EXIT") != "" {
		return nil
	}
	fmt.Println("\nEverything stays up until Ctrl-C.")
	<-ctx.Done()
	return nil
}

// weirProcess is a running weir.
type weirProcess struct{ url, log string }

// startWeir starts weir as a user would, and waits until it has seen the cluster.
func startWeir(ctx context.Context, c *cluster, p *plane.Plane, binary string) (*weirProcess, error) {
	// A user of its own: policies do not judge Weir, and are to judge the administrator.
	_, kubeconfig, err := p.UserConfig("weir")
	if err != nil {
		return nil, err
	}
	if _, err := c.create(ctx, bindings, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: weir}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: weir}]`); err != nil {
		return nil, err
	}
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	metrics, health := fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	w := &weirProcess{url: "http://" + metrics, log: filepath.Join(p.Dir, "weir.log")}
	args := []string{"up", "--mode", "replace", "--kubeconfig", kubeconfig, "--log-format", "json",
		"--webhook-url", fmt.Sprintf("https://localhost:%d", ports[2]), "--webhook-bind-address", fmt.Sprintf("127.0.0.1:%d", ports[2]), "--shutdown-delay", "0s",
		"--metrics-bind-address", metrics, "--metrics-secure=false", "--health-probe-bind-address", health}
	fmt.Println("\n$", binary, args)
	began := time.Now()
	if err := plane.Command("weir", binary, w.log, args...).Start(ctx); err != nil {
		return nil, err
	}
	if err := waitReady(ctx, "http://"+health+"/readyz"); err != nil {
		return nil, fmt.Errorf("wait for weir (its log: %s): %w", w.log, err)
	}
	fmt.Printf("weir has seen the cluster after %s\n", time.Since(began).Round(time.Millisecond))
	return w, nil
}

// startPage starts kubectl weir ui, and returns the address of the page, and what ends it.
func startPage(p *plane.Plane, plugin string) (address string, end func(), err error) {
	cmd := exec.Command(plugin, "ui", "--kubeconfig", p.Kubeconfig)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, fmt.Errorf("start the page: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("start the page: %w", err)
	}
	end = func() {
		_ = cmd.Process.Kill() // or it has ended already
		_ = cmd.Wait()
	}
	if address, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		end()
		return "", nil, fmt.Errorf("start the page: it prints no address: %w", err)
	}
	return strings.TrimSpace(address), end, nil
}
