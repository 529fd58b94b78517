package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestVersionStandsInOnePlace: who makes a release changes charts/weir/Chart.yaml, where Helm wants
// it, and the changelog.
func TestVersionStandsInOnePlace(t *testing.T) {
	found := regexp.MustCompile(`(?m)^(?:version|appVersion): (\S+)$`).FindAllStringSubmatch(read(t, "charts/weir/Chart.yaml"), -1)
	if len(found) != 2 || found[0][1] != found[1][1] {
		t.Fatalf("the versions of the chart and of what it installs are %v, want two of the same", found)
	}
	version := regexp.MustCompile(`(^|[^0-9.])` + regexp.QuoteMeta(found[0][1]) + `($|[^0-9.])`)
	files := tracked(t)
	for _, f := range files {
		elsewhere := f != "charts/weir/Chart.yaml" && f != "CHANGELOG.md" && !strings.HasPrefix(filepath.Base(f), "go.")
		if elsewhere && !strings.HasPrefix(filepath.Ext(f), ".png") && version.MatchString(read(t, f)) {
			t.Errorf("%s names the version %s", f, found[0][1])
		}
	}
}

// TestDockerImageHasAllSources: .dockerignore lets through each folder that the program is made of.
func TestDockerImageHasAllSources(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	let := strings.Fields(read(t, ".dockerignore"))
	for pkg := range strings.FieldsSeq(string(out)) {
		ours, ok := strings.CutPrefix(pkg, module)
		folder, _, _ := strings.Cut(ours, "/")
		if ok && !slices.Contains(let, "!"+folder) {
			t.Errorf(".dockerignore leaves out %s", ours)
		}
	}
}

// tracked are the files of the repository.
func tracked(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("this is no clone: %v", err)
	}
	return strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
}
