// Command worker is what the pods of the stories run. It answers requests with its name, takes as
// long to leave as LINGER says (like 5s), and, where SERVES names a resource as
// GROUP/VERSION/RESOURCE, is an operator for it: it takes the finalizer stories.weir.dev/cleanup
// off what is being deleted in its own namespace, with the permissions of its pod. Where ENDS is
// set, it ends at once.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

func run() error {
	if os.Getenv("ENDS") != "" {
		return nil
	}
	linger, err := time.ParseDuration(or(os.Getenv("LINGER"), "0s"))
	if err != nil {
		return fmt.Errorf("read LINGER: %w", err)
	}
	told, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	// An operator works until it really ends: that is what a grace period is for.
	working, end := context.WithCancel(context.Background())
	defer end()
	if what := os.Getenv("SERVES"); what != "" {
		o, err := newOperator(what)
		if err != nil {
			return err
		}
		go o.work(working)
	}
	failed := make(chan error, 1)
	go func() { failed <- http.ListenAndServe(":8080", http.HandlerFunc(answer)) }()
	select {
	case err := <-failed:
		return err
	case <-told.Done():
	}
	fmt.Println("told to leave, which takes", linger)
	<-time.After(linger)
	fmt.Println("left")
	return nil
}

func answer(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintln(w, os.Getenv("HOSTNAME"))
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
