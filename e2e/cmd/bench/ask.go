package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
)

const (
	// askedTimes is how often each question is asked; the median is told.
	askedTimes = 5
	// smallNamespace is how many objects there are in the namespace of the question that people
	// ask most.
	smallNamespace = 1000
	// calmTime is how long the API server is left alone after it has started: it reads what it
	// keeps in memory.
	calmTime = 15 * time.Second
)

// measureAsking asks about a small namespace in a cluster that is full, and about what takes all of
// that along.
func (b *bench) measureAsking(ctx context.Context) error {
	if err := b.fill(ctx); err != nil {
		return err
	}
	small, err := load.Populate(ctx, b.Config, load.Tree(smallNamespace))
	if err != nil {
		return err
	}
	for _, q := range []struct {
		name, question string
		costs          bool // the API server's memory is measured, too
	}{
		{fmt.Sprintf("tree of an object in a namespace of %d", smallNamespace), "tree configmap owner -n " + small.Namespace, false},
		{"plan of its delete", "plan configmap owner -n " + small.Namespace, false},
		{"tree of a cluster-scoped object", "tree clusterrole cluster-admin", false},
		{fmt.Sprintf("plan of the delete of a namespace of %d", b.filled()), "plan namespace " + b.full.Namespace, false},
		{"plan of the delete of an object with all these dependents", "plan configmap owner -n " + b.full.Namespace, true},
		{"tree of that object", "tree configmap owner -n " + b.full.Namespace, false},
		{"pending, the whole cluster", "pending -A", false},
	} {
		for range askedTimes {
			if err := b.ask(ctx, q.name, q.question); err != nil {
				return err
			}
		}
		if !q.costs {
			continue
		}
		// Of an API server that was started a moment ago: what it took for an earlier answer it does
		// not give back.
		if err := b.RestartAPIServer(ctx); err != nil {
			return err
		}
		if err := pause(ctx, calmTime); err != nil {
			return err
		}
		before, most, err := peak(b.Child(plane.APIServer), func() error { return b.ask(ctx, q.name, q.question) })
		if err != nil {
			return err
		}
		b.note(q.name+", by the API server", figure{"memory before, MB", mb(before)},
			figure{"at the most, of before", float64(most) / float64(before)})
	}
	return nil
}

// ask has kubectl weir answer, and notes how long it took from the start of the process to its end.
func (b *bench) ask(ctx context.Context, name, question string) error {
	cmd := exec.CommandContext(ctx, b.plugin, append(strings.Fields(question), "--cache-dir", filepath.Join(b.Dir, "cache"))...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+b.Kubeconfig)
	var said bytes.Buffer
	cmd.Stderr = &said
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("kubectl weir %s: %w: %s", question, err, said.String())
	}
	b.note(name, figure{"took, s", time.Since(began).Seconds()})
	return nil
}
