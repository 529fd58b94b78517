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
)

const (
	// askedTimes is how often each question is asked; the median is told.
	askedTimes = 5
	// smallNamespace is how many objects there are in the namespace of the question that people
	// ask most.
	smallNamespace = 1000
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
	}{
		{fmt.Sprintf("tree of an object in a namespace of %d", smallNamespace), "tree configmap owner -n " + small.Namespace},
		{"plan of its delete", "plan configmap owner -n " + small.Namespace},
		{"tree of a cluster-scoped object", "tree clusterrole cluster-admin"},
		{fmt.Sprintf("plan of the delete of a namespace of %d", b.filled()), "plan namespace " + b.full.Namespace},
		{"plan of the delete of an object with all these dependents", "plan configmap owner -n " + b.full.Namespace},
		{"tree of that object", "tree configmap owner -n " + b.full.Namespace},
		{"pending, the whole cluster", "pending -A"},
	} {
		for range askedTimes {
			if err := b.ask(ctx, q.name, q.question); err != nil {
				return err
			}
		}
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
