package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/e2e/plane"
)

// result names the specs that ran.
type result struct{ passed, failed []string }

// runSuite runs the specs that focus selects and tells of each as it ends. All
// that the suite prints goes to a log.
func runSuite(ctx context.Context, out io.Writer, binary, kubeconfig, focus, dir string) (result, error) {
	report := filepath.Join(dir, "report.json")
	suite := plane.Command("e2e.test", binary, filepath.Join(dir, "e2e.test.log"),
		"--provider=skeleton", "--kubeconfig="+kubeconfig,
		"--ginkgo.focus="+focus, "--ginkgo.v", "--ginkgo.no-color", "--ginkgo.silence-skips", "--ginkgo.json-report="+report,
		// There is one fake node, and no pods of the system.
		"--minStartupPods=0", "--allowed-not-ready-nodes=0",
	)
	if err := suite.Start(ctx); err != nil {
		return result{}, err
	}
	tellProgress(ctx, out, suite)
	suiteErr := suite.Wait()
	if ctx.Err() != nil {
		return result{}, ctx.Err()
	}
	r, err := readReport(report)
	if err != nil {
		return r, errors.Join(err, suiteErr, fmt.Errorf("the suite's log ends with\n%s", suite.Tail(30)))
	}
	return r, nil
}

// tellProgress copies from the suite's log the lines with which it begins and
// ends a spec, until the suite ends.
func tellProgress(ctx context.Context, out io.Writer, suite *plane.Child) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	var read int64
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			return
		case <-suite.Exited():
			ended = true // and what it wrote last is read once more
		case <-tick.C:
		}
		text := readFrom(suite.LogPath, read)
		whole := strings.LastIndexByte(text, '\n') + 1
		read += int64(whole)
		for line := range strings.Lines(text[:whole]) {
			if isProgress(line) {
				fmt.Fprint(out, line)
			}
		}
	}
}

// isProgress picks Ginkgo's lines: what runs, how it ended, and why it failed.
func isProgress(line string) bool {
	for _, prefix := range []string{"Will run", "[sig-", "•", "[FAILED]", "[PANICKED]", "Ran "} {
		if strings.HasPrefix(strings.TrimSpace(line), prefix) {
			return true
		}
	}
	return false
}

// readFrom returns what a file has from an offset on; a log that is not there
// yet has nothing.
func readFrom(path string, offset int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, offset, 1<<40))
	if err != nil {
		return ""
	}
	return string(data)
}

// readReport reads Ginkgo's JSON report, in which specs that were not selected
// are skipped.
func readReport(path string) (result, error) {
	var r result
	data, err := os.ReadFile(path)
	if err != nil {
		return r, fmt.Errorf("read the suite's report: %w", err)
	}
	var suites []struct {
		SpecReports []struct {
			ContainerHierarchyTexts []string
			LeafNodeType            string
			LeafNodeText            string
			State                   string
			Failure                 struct{ Message string }
		}
	}
	if err := json.Unmarshal(data, &suites); err != nil {
		return r, fmt.Errorf("read the suite's report: %w", err)
	}
	for _, suite := range suites {
		for _, spec := range suite.SpecReports {
			name := strings.Join(append(spec.ContainerHierarchyTexts, spec.LeafNodeText), " ")
			switch {
			case spec.State == "skipped" || spec.State == "pending":
			case spec.State != "passed":
				r.failed = append(r.failed, fmt.Sprintf("%s %s: %s", spec.State, strings.TrimSpace(spec.LeafNodeType+" "+name), spec.Failure.Message))
			case spec.LeafNodeType == "It":
				r.passed = append(r.passed, name)
			}
		}
	}
	slices.Sort(r.passed)
	slices.Sort(r.failed)
	return r, nil
}
