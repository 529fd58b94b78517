// Command versions runs a part of the tests on control planes of several versions of Kubernetes,
// one after the other, and prints a table of what passed. It goes on after a failure.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weir-dev/weir/e2e/plane"
)

// part is what is tested on each version, by the names of tests.
type part struct{ name, pkg, run string }

var parts = []part{
	{"collector", ".", `^(TestCollectorScripts|TestEachObjectCostsOneRequest|TestKindThatComesAndGoesLeavesNothingBehind|TestRefus.*)$`},
	{"policies", ".", `^(TestPolicyScripts|TestEvictions.*|TestDeletecollection.*)$`},
	{"webhook configurations", ".", `^(TestPoliciesComeAndGo|TestAWebhookThatIsNotAskedIsSeen)$`},
	{"namespaces", ".", `^(TestNamespaceControllerWaitsForTheWavesOfAPolicy|TestEmptyNamespace.*|TestCreateThatASlowWebhook.*)$`},
	{"beside the built-in", ".", `^(TestReplaceModeWaitsWhileAnotherCollectorWorks|TestCompanionTellsWhether.*|TestShadowFinds.*|TestCollectingIsHandedOver)$`},
	{"brake", ".", `^(TestBrake|TestBuiltInCollectorIsHeld).*$`},
	{"questions", ".", `^(TestPlan.*|TestWhy.*|TestDoctor.*)$`},
	{"upgrade of the API servers", ".", `^TestAPIServersAreUpgradedOneAfterTheOther$`},
	{"chart", "./chart", `.`},
}

// current is the version that all other tests run on.
const current = "v1.36"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	only := flag.String("only", "", "parts to run, separated by commas; default: all")
	timeout := flag.Duration("timeout", time.Hour, "after this, what is left is not run")
	logs := flag.String("logs", "", "folder for what tests print; default: a temporary one")
	flag.Parse()
	versions := flag.Args()
	if err := run(ctx, versions, *only, *timeout, *logs); err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, versions []string, only string, timeout time.Duration, logs string) (err error) {
	if len(versions) == 0 {
		if versions, err = known(); err != nil {
			return err
		}
	}
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	if logs == "" {
		logs, err = os.MkdirTemp("", "weir-versions-")
	} else {
		err = os.MkdirAll(logs, 0o755)
	}
	if err != nil {
		return fmt.Errorf("make a folder for logs: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	results := map[string]map[string]result{}
	for _, v := range versions {
		results[v] = map[string]result{}
		for _, p := range chosen {
			r := p.try(ctx, v, filepath.Join(logs, v+"-"+strings.ReplaceAll(p.name, " ", "-")+".log"))
			results[v][p.name] = r
			fmt.Printf("%6s  %-8s %-24s %s\n", time.Since(began).Round(time.Second), v, p.name, r)
		}
	}
	fmt.Printf("\n%s\nlogs: %s\n", table(versions, chosen, results), logs)
	return failures(versions, chosen, results)
}

// known are the versions that there is a module for, and the current one.
func known() ([]string, error) {
	mods, err := filepath.Glob("versions/*/go.mod")
	if err != nil || len(mods) == 0 {
		return nil, fmt.Errorf("find versions/*/go.mod (this runs in the folder e2e): %w", err)
	}
	var out []string
	for _, m := range mods {
		out = append(out, filepath.Base(filepath.Dir(m)))
	}
	return append(out, current), nil
}

func choose(only string) ([]part, error) {
	if only == "" {
		return parts, nil
	}
	var out []part
	for _, name := range strings.Split(only, ",") {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("--only: there is no part %q", name)
		}
		out = append(out, parts[i])
	}
	return out, nil
}

// result is how a part's tests ended on one version.
type result struct {
	passed int
	failed []string
	broken error // it did not come to the end
}

func (r result) String() string {
	switch {
	case r.broken != nil && len(r.failed) == 0:
		return "not run: " + r.broken.Error()
	case len(r.failed) > 0:
		return fmt.Sprintf("%d of %d; failed: %s", r.passed, r.passed+len(r.failed), strings.Join(r.failed, ", "))
	}
	return fmt.Sprintf("%d of %d", r.passed, r.passed)
}

// try runs a part on one version. What it prints goes to a file.
func (p part) try(ctx context.Context, version, log string) (r result) {
	if r.broken = ctx.Err(); r.broken != nil {
		return r
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-tags", "full", "-v", "-count=1", "-timeout", "40m", "-run", p.run, p.pkg)
	cmd.Env = os.Environ()
	if version != current {
		cmd.Env = append(cmd.Env, plane.KubernetesVariable+"="+version)
	}
	file, err := os.Create(log)
	if err != nil {
		return result{broken: fmt.Errorf("keep what is printed: %w", err)}
	}
	defer file.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return result{broken: err}
	}
	cmd.Stderr = file
	if err := cmd.Start(); err != nil {
		return result{broken: err}
	}
	r.read(io.TeeReader(out, file))
	if err := cmd.Wait(); err != nil && len(r.failed) == 0 {
		r.broken = fmt.Errorf("%w: see %s", err, log)
	}
	if r.broken == nil && r.passed+len(r.failed) == 0 {
		r.broken = errors.New("no test has such a name")
	}
	return r
}

// read counts tests, without their parts.
func (r *result) read(in io.Reader) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		word := strings.Fields(lines.Text())
		switch {
		case len(word) < 3:
		case strings.HasPrefix(lines.Text(), "--- PASS: "):
			r.passed++
		case strings.HasPrefix(lines.Text(), "--- FAIL: "):
			r.failed = append(r.failed, word[2])
		}
	}
	_, _ = io.Copy(io.Discard, in) // a line that is too long
}

// table is one for a document.
func table(versions []string, chosen []part, results map[string]map[string]result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| | %s |\n|---%s|\n", strings.Join(versions, " | "), strings.Repeat("|---", len(versions)))
	for _, p := range chosen {
		fmt.Fprintf(&b, "| %s |", p.name)
		for _, v := range versions {
			r := results[v][p.name]
			if r.broken != nil && r.passed+len(r.failed) == 0 {
				b.WriteString(" not run |")
				continue
			}
			fmt.Fprintf(&b, " %d of %d |", r.passed, r.passed+len(r.failed))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func failures(versions []string, chosen []part, results map[string]map[string]result) error {
	var errs []error
	for _, v := range versions {
		for _, p := range chosen {
			if r := results[v][p.name]; r.broken != nil || len(r.failed) > 0 {
				errs = append(errs, fmt.Errorf("%s, %s: %s", v, p.name, r))
			}
		}
	}
	return errors.Join(errs...)
}
