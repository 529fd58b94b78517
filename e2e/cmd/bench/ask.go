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
	askingName = "asking"
	// askedTimes is how often each question is asked; the median is told.
	askedTimes = 5
	// smallNamespace is how many objects there are in the namespace of the question that people
	// ask most.
	smallNamespace = 1000
	// mostToolTime is how long another tool may take for an answer.
	mostToolTime = 3 * time.Minute
	// calmTime is how long the API server is left alone after it has started: it reads what it
	// keeps in memory.
	calmTime = 15 * time.Second
)

// A question is one, and what other tools are asked; nil: they have no such question. With costs
// the API server's memory is measured, too.
type question struct {
	name       string
	args, tool []string
	costs      bool
}

// measureAsking asks about a small namespace in a cluster that is full, and about what takes all of
// that along.
func (b *bench) measureAsking(ctx context.Context, r *report) error {
	if err := b.fill(ctx); err != nil {
		return err
	}
	small, err := load.Populate(ctx, b.plane.Config, load.Tree(smallNamespace))
	if err != nil {
		return err
	}
	defer func() { _ = load.Clean(ctx, b.plane.Config, small) }() // the plane ends now
	in := func(namespace string, args ...string) []string { return append(args, "-n", namespace) }
	for _, q := range []question{
		{fmt.Sprintf("tree of an object in a namespace of %d", smallNamespace),
			in(small.Namespace, "tree", "configmap", "owner"), in(small.Namespace, "configmap", "owner"), false},
		{"tree of a cluster-scoped object", []string{"tree", "clusterrole", "cluster-admin"},
			[]string{"clusterrole", "cluster-admin"}, false},
		{"plan of its delete", in(small.Namespace, "plan", "configmap", "owner"), nil, false},
		{fmt.Sprintf("plan of the delete of a namespace of %d", b.filled()),
			[]string{"plan", "namespace", b.full.Namespace}, nil, false},
		{"plan of the delete of an object with all these dependents", in(b.full.Namespace, "plan", "configmap", "owner"),
			nil, true},
		{"tree of that object", in(b.full.Namespace, "tree", "configmap", "owner"),
			in(b.full.Namespace, "configmap", "owner"), false},
		{"pending, the whole cluster", []string{"pending", "-A"}, nil, true},
	} {
		if err := b.measureQuestion(ctx, r, q); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) measureQuestion(ctx context.Context, r *report, q question) error {
	args := append(q.args, "--cache-dir", filepath.Join(b.plane.Dir, "cache"))
	for range askedTimes {
		if err := b.ask(ctx, r, q.name, b.plugin, args...); err != nil {
			return err
		}
	}
	for _, tool := range b.treeTools {
		if q.tool != nil {
			if err := b.ask(ctx, r, q.name, tool, q.tool...); err != nil {
				return err
			}
		}
	}
	if !q.costs {
		return nil
	}
	// Of an API server that was started a moment ago: what it took for an earlier answer it does
	// not give back.
	if err := b.plane.RestartAPIServer(ctx); err != nil {
		return err
	}
	if err := load.Pause(ctx, calmTime); err != nil {
		return err
	}
	before, most, err := load.Peak(b.plane.Child(plane.APIServer),
		func() error { return b.ask(ctx, r, q.name, b.plugin, args...) })
	if err != nil {
		return err
	}
	r.note(q.name+", by the API server", figure{"memory before, MB", mb(before)},
		figure{"at the most, of before", float64(most) / float64(before)})
	return nil
}

// ask runs a command, and notes how long it took from the start of the process to its end.
func (b *bench) ask(ctx context.Context, r *report, name, binary string, args ...string) error {
	limited, cancel := context.WithTimeout(ctx, mostToolTime)
	defer cancel()
	cmd := exec.CommandContext(limited, binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+b.plane.Kubeconfig)
	var said bytes.Buffer
	cmd.Stderr = &said
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w after %s: %s", filepath.Base(binary), strings.Join(args, " "), err,
			time.Since(began).Round(time.Second), said.String())
	}
	r.note(name+", by "+filepath.Base(binary), figure{"took, s", time.Since(began).Seconds()})
	return nil
}
