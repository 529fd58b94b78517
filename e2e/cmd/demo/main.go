// Command demo shows Weir at work: it starts a control plane without the built-in collectors, lets
// Weir collect in it, and plays a story of deletions with real controllers and running pods.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	binary := flag.String("weir", "../bin/weir", "the weir binary")
	plugin := flag.String("kubectl-weir", "../bin/kubectl-weir", "the plugin of kubectl")
	flag.Parse()
	if err := run(ctx, *binary, *plugin); err != nil {
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
	defer func() { err = errors.Join(err, p.Stop()) }()
	if err := load.CreateCRDs(ctx, p.Config, "../policies/crds"); err != nil {
		return err
	}
	bins, err := plane.Build(ctx, os.Stdout, plane.Kubectl)
	if err != nil {
		return err
	}
	w, err := startWeir(ctx, p, binary)
	if err != nil {
		return err
	}
	storyCtx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	t := teller{kubectl: bins[plane.Kubectl], plugin: plugin, kubeconfig: p.Kubeconfig}
	if err := t.tell(storyCtx); err != nil {
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
  %s     all of that as a page
  kubectl delete deployment hello --cascade=foreground
  bin/kubectl-weir history -A     what was collected, and because of which object
  %s        metrics
  %s        what Weir did, and why
`, p.Kubeconfig, page, w.URL+"/metrics", w.LogPath)
	if os.Getenv("DEMO_EXIT") != "" {
		return nil
	}
	fmt.Println("\nEverything stays up until Ctrl-C.")
	<-ctx.Done()
	return nil
}

// startWeir starts weir as a user would, and waits until it has seen the cluster.
func startWeir(ctx context.Context, p *plane.Plane, binary string) (*weir.Process, error) {
	// A user of its own: policies do not judge Weir, and are to judge the administrator.
	_, kubeconfig, err := load.User(ctx, p, "weir")
	if err != nil {
		return nil, err
	}
	port, err := plane.FreePort()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	w, err := weir.Start(ctx, weir.Options{Binary: binary, Kubeconfig: kubeconfig, Dir: p.Dir, Command: "up",
		Flags: []string{"--mode", "replace", "--verbosity=0", "--brake-most=50", "--webhook-url", fmt.Sprintf("https://localhost:%d", port),
			"--webhook-bind-address", fmt.Sprintf("127.0.0.1:%d", port), "--shutdown-delay", "0s"}})
	if err != nil {
		return nil, err
	}
	fmt.Printf("\n$ %s %s\nweir has seen the cluster after %s\n", binary, strings.Join(w.Args, " "), time.Since(began).Round(time.Millisecond))
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
