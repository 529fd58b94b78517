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

// asked is how long a question takes, from the start of the process to its end.
type asked struct {
	question string
	took     map[string]time.Duration // by who was asked
}

const askingName = "asking"

// askedTimes is how often each question is asked; the median is told.
const askedTimes = 5

// smallNamespace is how many objects there are in the namespace of the question that people ask
// most.
const smallNamespace = 1000

// mostToolTime is how long another tool may take for an answer.
const mostToolTime = 3 * time.Minute

// measureAsking asks about a small namespace in a cluster that is full, and about what takes all of
// that along.
func (b *bench) measureAsking(ctx context.Context, r *report) error {
	if err := b.fill(ctx, r); err != nil {
		return err
	}
	small, err := load.Populate(ctx, b.plane.Config, load.Tree(smallNamespace))
	if err != nil {
		return err
	}
	defer func() { _ = load.Clean(ctx, b.plane.Config, small) }() // the plane ends now
	in := func(args ...string) []string { return append(args, "-n", small.Namespace) }
	for _, q := range []struct {
		question string
		args     []string
		tool     []string // what other tools are asked; nil: they have no such question
	}{
		{fmt.Sprintf("tree of an object in a namespace of %d", smallNamespace), in("tree", "configmap", "owner"), in("configmap", "owner")},
		{"tree of a cluster-scoped object", []string{"tree", "clusterrole", "cluster-admin"}, []string{"clusterrole", "cluster-admin"}},
		{"plan of its delete", in("plan", "configmap", "owner"), nil},
		{"plan of the delete of a namespace of " + fmt.Sprint(r.objects), []string{"plan", "namespace", b.full.Namespace}, nil},
		{"plan of the delete of an object with all these dependents", []string{"plan", "configmap", "owner", "-n", b.full.Namespace}, nil},
		{"tree of that object", []string{"tree", "configmap", "owner", "-n", b.full.Namespace}, []string{"configmap", "owner", "-n", b.full.Namespace}},
		{"pending, the whole cluster", []string{"pending", "-A"}, nil},
	} {
		a := asked{question: q.question, took: map[string]time.Duration{}}
		if a.took["kubectl weir"], err = b.ask(ctx, askedTimes, b.plugin, append(q.args, "--cache-dir", filepath.Join(b.plane.Dir, "cache"))...); err != nil {
			return err
		}
		b.say("%s: kubectl weir %.2f s", q.question, a.took["kubectl weir"].Seconds())
		for _, tool := range b.treeTools {
			if q.tool == nil {
				continue
			}
			if a.took[tool], err = b.ask(ctx, 1, tool, q.tool...); err != nil {
				return err
			}
			b.say("%s: %s %.2f s", q.question, filepath.Base(tool), a.took[tool].Seconds())
		}
		r.asked = append(r.asked, a)
	}
	return b.measureAskedCosts(ctx, r)
}

// ask runs a command some times, and returns the median of how long it took.
func (b *bench) ask(ctx context.Context, times int, binary string, args ...string) (time.Duration, error) {
	var took []float64
	for range times {
		limited, cancel := context.WithTimeout(ctx, mostToolTime)
		cmd := exec.CommandContext(limited, binary, args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+b.plane.Kubeconfig)
		var said bytes.Buffer
		cmd.Stderr = &said
		began := time.Now()
		err := cmd.Run()
		cancel()
		if err != nil {
			return 0, fmt.Errorf("%s %s: %w after %s: %s", filepath.Base(binary), strings.Join(args, " "), err, time.Since(began).Round(time.Second), said.String())
		}
		took = append(took, time.Since(began).Seconds())
	}
	return time.Duration(median(took) * float64(time.Second)), nil
}

func (r *report) writeAsking(s *strings.Builder) {
	if len(r.asked) == 0 {
		return
	}
	fmt.Fprintf(s, "\n| a question, with %d objects in the cluster | kubectl weir |", r.objects)
	for _, t := range r.bench.treeTools {
		fmt.Fprintf(s, " %s |", filepath.Base(t))
	}
	s.WriteString("\n|---|---|" + strings.Repeat("---|", len(r.bench.treeTools)) + "\n")
	for _, a := range r.asked {
		fmt.Fprintf(s, "| %s | %.2f s |", a.question, a.took["kubectl weir"].Seconds())
		for _, t := range r.bench.treeTools {
			if took, ok := a.took[t]; ok {
				fmt.Fprintf(s, " %.2f s, %.1f× |", took.Seconds(), took.Seconds()/a.took["kubectl weir"].Seconds())
			} else {
				s.WriteString(" – |")
			}
		}
		s.WriteString("\n")
	}
}
