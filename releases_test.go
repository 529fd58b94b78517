package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
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

// TestWorkflowsAreBound: an action is pinned by its commit, with the tag beside it; a job has the
// rights that it names, and no others; what it runs is a target of the Makefile, as anyone can.
func TestWorkflowsAreBound(t *testing.T) {
	type job struct {
		Permissions map[string]string
		Steps       []struct{ Uses, Run string }
	}
	files, err := filepath.Glob(".github/workflows/*")
	if err != nil || len(files) < 3 {
		t.Fatalf("found the workflows %v: %v", files, err)
	}
	pinned := regexp.MustCompile(`(?m)^    - uses: [a-z0-9/-]+@[0-9a-f]{40} # v[0-9]+\.[0-9]+\.[0-9]+$`)
	for _, f := range files {
		text := read(t, f)
		var w struct {
			Permissions map[string]string
			Jobs        map[string]job
		}
		if err := yaml.Unmarshal([]byte(text), &w); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		if w.Permissions == nil || len(w.Permissions) > 0 {
			t.Errorf("%s: what all jobs may is %v, want {}", f, w.Permissions)
		}
		uses := 0
		for name, j := range w.Jobs {
			if len(j.Permissions) == 0 {
				t.Errorf("%s: job %s does not say what it may", f, name)
			}
			for _, s := range j.Steps {
				if s.Uses != "" {
					uses++
				}
				target, ok := strings.CutPrefix(s.Run, "make ")
				if s.Run != "" && (!ok || !isTarget(t, target)) {
					t.Errorf("%s: job %s runs %q, want make and a target", f, name, s.Run)
				}
			}
		}
		if found := pinned.FindAllString(text, -1); len(found) != uses {
			t.Errorf("%s: %d of %d actions are pinned by commit and tag", f, len(found), uses)
		}
	}
}

func isTarget(t *testing.T, name string) bool {
	t.Helper()
	return regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + `:`).MatchString(read(t, "Makefile"))
}

// TestDocumentsNameTargetsThatExist: who copies make X from a document finds X.
func TestDocumentsNameTargetsThatExist(t *testing.T) {
	blocks := regexp.MustCompile("(?ms)^```(?:console|sh)\n(.*?)^```$")
	command := regexp.MustCompile(`(?m)(?:^|&& )make ((?:[a-z0-9-]+ ?)+)`)
	found := 0
	for _, f := range tracked(t) {
		if filepath.Ext(f) != ".md" {
			continue
		}
		for _, b := range blocks.FindAllStringSubmatch(read(t, f), -1) {
			for _, m := range command.FindAllStringSubmatch(b[1], -1) {
				for target := range strings.FieldsSeq(m[1]) {
					found++
					if !isTarget(t, target) {
						t.Errorf("%s says make %s, which is no target", f, target)
					}
				}
			}
		}
	}
	if found == 0 {
		t.Error("found no make")
	}
}

// TestFilesForOthersAreWhole: services read these, and say nothing if they cannot.
func TestFilesForOthersAreWhole(t *testing.T) {
	for _, f := range []string{".github/ISSUE_TEMPLATE/bug.yml", ".github/ISSUE_TEMPLATE/config.yml", "charts/artifacthub-repo.yml"} {
		if err := yaml.Unmarshal([]byte(read(t, f)), new(map[string]any)); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
	var renovate struct {
		Gomod struct{ ManagerFilePatterns []string }
	}
	if err := json.Unmarshal([]byte(read(t, "renovate.json")), &renovate); err != nil {
		t.Fatal(err)
	}
	for _, p := range renovate.Gomod.ManagerFilePatterns {
		if !regexp.MustCompile(strings.Trim(p, "/")).MatchString("go.tools.mod") {
			t.Errorf("renovate.json: %s does not match go.tools.mod", p)
		}
	}
	insights := read(t, "SECURITY-INSIGHTS.yml")
	for _, f := range regexp.MustCompile(`weir/(?:blob/)?main/([A-Za-z./-]+)`).FindAllStringSubmatch(insights, -1) {
		read(t, f[1])
	}
	var has struct{ Header, Project, Repository map[string]any }
	if err := yaml.Unmarshal([]byte(insights), &has); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"schema-version", "last-updated", "last-reviewed", "url"} {
		if has.Header[k] == nil {
			t.Errorf("SECURITY-INSIGHTS.yml: header has no %s", k)
		}
	}
	for _, k := range []string{"name", "administrators", "repositories", "vulnerability-reporting"} {
		if has.Project[k] == nil {
			t.Errorf("SECURITY-INSIGHTS.yml: project has no %s", k)
		}
	}
	for _, k := range []string{"url", "status", "accepts-change-request", "accepts-automated-change-request", "core-team", "license", "security"} {
		if has.Repository[k] == nil {
			t.Errorf("SECURITY-INSIGHTS.yml: repository has no %s", k)
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
