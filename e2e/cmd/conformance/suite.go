package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// result names the specs that ran.
type result struct{ passed, failed []string }

// runSuite runs the specs that focus selects and tells of each as it ends. All that the suite prints
// goes to a log.
func runSuite(ctx context.Context, out io.Writer, binary, kubeconfig, focus, dir string) (result, error) {
	log, err := os.Create(filepath.Join(dir, "e2e.test.log"))
	if err != nil {
		return result{}, err
	}
	defer log.Close()
	report := filepath.Join(dir, "report.json")
	suite := exec.CommandContext(ctx, binary, "--provider=skeleton", "--kubeconfig="+kubeconfig,
		"--ginkgo.focus="+focus, "--ginkgo.v", "--ginkgo.no-color", "--ginkgo.silence-skips", "--ginkgo.json-report="+report,
		// There is one fake node, and no pods of the system.
		"--minStartupPods=0", "--allowed-not-ready-nodes=0")
	suite.Cancel = func() error { return suite.Process.Signal(syscall.SIGTERM) }
	printed, err := suite.StdoutPipe()
	if err != nil {
		return result{}, err
	}
	suite.Stderr = log
	if err := suite.Start(); err != nil {
		return result{}, err
	}
	for lines := bufio.NewReader(printed); ; {
		line, err := lines.ReadString('\n')
		if _, logErr := log.WriteString(line); logErr != nil || err != nil {
			break
		}
		if isProgress(line) {
			fmt.Fprint(out, line)
		}
	}
	suiteErr := suite.Wait() // not 0 where a spec failed, which the report says
	r, err := readReport(report)
	if err != nil {
		return r, errors.Join(err, suiteErr, ctx.Err(), fmt.Errorf("the suite's log is %s", log.Name()))
	}
	return r, ctx.Err()
}

// isProgress picks Ginkgo's lines: what runs, how it ended, and why it failed.
func isProgress(line string) bool {
	return slices.ContainsFunc([]string{"Will run", "[sig-", "•", "[FAILED]", "[PANICKED]", "Ran "}, func(prefix string) bool {
		return strings.HasPrefix(strings.TrimSpace(line), prefix)
	})
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
