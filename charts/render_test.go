package charts

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLintersFindNothing(t *testing.T) {
	t.Parallel()
	for name, values := range valueSets(t) {
		for _, helm := range []string{helm4, helm3} {
			if out, err := run(t, helm, "lint", "weir", "--strict", "--kube-version", "1.36.3", "--values", values); err != nil {
				t.Errorf("%s: %s lint: %v\n%s", name, helm, err, out)
			}
		}
	}
}

func TestHelm3RendersWhatHelm4Renders(t *testing.T) {
	t.Parallel()
	for name, values := range valueSets(t) {
		four, err := template(t, helm4, "--values", values)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		three, err := template(t, helm3, "--values", values)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(sorted(manifests(t, four)), sorted(manifests(t, three))); diff != "" {
			t.Errorf("%s (-Helm 4 +Helm 3):\n%s", name, diff)
		}
	}
}

// sorted is without the order in which the Helms put kinds that they install at the same time.
func sorted(all []object) map[string]object {
	out := map[string]object{}
	for _, o := range all {
		out[identity(o)] = o
	}
	return out
}

func identity(o object) string {
	ns, _ := at(o, "metadata", "namespace").(string)
	name, _ := at(o, "metadata", "name").(string)
	kind, _ := o["kind"].(string)
	return kind + " " + ns + "/" + name
}

func TestSuites(t *testing.T) {
	t.Parallel()
	out, err := run(t, unittest, "--color=false", "--strict", "weir")
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	files, err := filepath.Glob("weir/tests/*_test.yaml")
	if want := fmt.Sprintf("Test Suites: %d passed, %[1]d total", len(files)); err != nil || len(files) < 7 || !strings.Contains(out, want) {
		t.Errorf("not all suites ran (%v), or not all passed:\n%s", files, out)
	}
}

// The chart cannot read files outside of itself, so it has copies: make generate makes them.
func TestFilesAreThoseOfPolicies(t *testing.T) {
	for from, to := range map[string]string{"../policies/crds": "weir/files/crds", "../policies": "weir/files/policies"} {
		want, got := contents(t, from), contents(t, to)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s is not %s any more: run make generate (-want +got):\n%s", to, from, diff)
		}
		if len(want) == 0 {
			t.Errorf("no files in %s", from)
		}
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(f)] = string(data)
	}
	return out
}

func TestDefinitionsAreRenderedAsTheyAre(t *testing.T) {
	all := rendered(t)
	for file := range contents(t, "../policies/crds") {
		var want object
		readYAML(t, filepath.Join("../policies/crds", file), &want)
		got := named(t, all, "CustomResourceDefinition", at(want, "metadata", "name").(string))
		if diff := cmp.Diff(jsonOf(t, want["spec"]), jsonOf(t, got["spec"])); diff != "" {
			t.Errorf("%s (-file +rendered):\n%s", file, diff)
		}
		if got := at(got, "metadata", "annotations", "helm.sh/resource-policy"); got != "keep" {
			t.Errorf("%s: resource-policy %v: helm uninstall would delete all policies", file, got)
		}
	}
}

func TestEveryShippedPolicyCanBeSwitchedOn(t *testing.T) {
	t.Parallel()
	var values struct {
		Policies map[string]bool `json:"policies"`
	}
	readAny(t, "weir/values.yaml", &values)
	for name := range values.Policies {
		if values.Policies[name] {
			t.Errorf("policies.%s is on: a fresh installation changes something", name)
		}
		data, _ := at(named(t, rendered(t, "--set", "policies."+name+"=true"), "ConfigMap", "weir-policies"), "data").(map[string]any)
		files := contents(t, "../policies")
		if len(data) != 1 {
			t.Errorf("policies.%s gives %d files", name, len(data))
		}
		for file, content := range data {
			// nindent leaves an end of line more than the file has.
			if strings.TrimRight(files[file], "\n") != strings.TrimRight(content.(string), "\n ") {
				t.Errorf("policies.%s gives a %s that is not that of policies/", name, file)
			}
		}
	}
	if len(values.Policies) != len(contents(t, "../policies")) {
		t.Errorf("%d policy files, %d values: one is missing", len(contents(t, "../policies")), len(values.Policies))
	}
}

// Whoever works in the cluster for Weir is in --self-users, or Weir judges itself.
func TestSelfUsersAreAllOfThem(t *testing.T) {
	all := rendered(t, "--set", "controller.serviceAccount.name=collector")
	var users []string
	for _, o := range all {
		if o["kind"] == "ServiceAccount" {
			users = append(users, "system:serviceaccount:weir-system:"+at(o, "metadata", "name").(string))
		}
	}
	slices.Sort(users)
	for _, name := range []string{"weir-controller", "weir-webhook"} {
		got := strings.Split(flag(t, named(t, all, "Deployment", name), "--self-users"), ",")
		slices.Sort(got)
		if diff := cmp.Diff(users, got); diff != "" {
			t.Errorf("--self-users of %s (-service accounts +got):\n%s", name, diff)
		}
	}
}

func flag(t *testing.T, deployment object, name string) string {
	t.Helper()
	containers := at(deployment, "spec", "template", "spec", "containers").([]any)
	for _, arg := range at(containers[0], "args").([]any) {
		if v, ok := strings.CutPrefix(arg.(string), name+"="); ok {
			return v
		}
	}
	t.Fatalf("%s has no %s", identity(deployment), name)
	return ""
}

// Values that the documentation shows are values that the chart takes.
func TestDocumentedValuesAreTaken(t *testing.T) {
	t.Parallel()
	blocks := 0
	docs, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range docs {
		for _, m := range regexp.MustCompile("(?s)```yaml\n(# values.yaml\n.*?)```").FindAllStringSubmatch(read(t, doc), -1) {
			blocks++
			file := filepath.Join(t.TempDir(), "values.yaml")
			if err := os.WriteFile(file, []byte(m[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := template(t, helm4, "--values", file); err != nil {
				t.Errorf("%s: %v in\n%s", doc, err, m[1])
			}
		}
	}
	if blocks == 0 {
		t.Error("found no values in docs")
	}
	for _, m := range regexp.MustCompile("`([a-zA-Z]+(?:\\.[a-zA-Z]+)+)(?:: [^`]*)?`").FindAllStringSubmatch(read(t, "../docs/install.md")+read(t, "../docs/security.md")+read(t, "../docs/alerts.md"), -1) {
		var values object
		readAny(t, "weir/values.yaml", &values)
		section, _, _ := strings.Cut(m[1], ".")
		if _, ours := values[section]; ours && !knownValue(values, strings.Split(m[1], ".")) {
			t.Errorf("the documentation speaks of %s, which is no value", m[1])
		}
	}
}

// What documentation calls less gives no way into pods: in the core group "*" is also nodes/proxy and pods/exec.
func TestNarrowRulesReachIntoNoPod(t *testing.T) {
	t.Parallel()
	_, less, _ := strings.Cut(read(t, "../docs/security.md"), "\n## Giving it less\n")
	documented := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(less)
	if len(documented) == 0 {
		t.Fatal("found no values")
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(documented[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, values := range []string{file, "ci/narrow.yaml"} {
		all := rendered(t, "--values", values)
		for _, role := range []string{"weir-controller", "weir-webhook"} {
			for _, rule := range at(named(t, all, "ClusterRole", role), "rules").([]any) {
				groups, resources := at(rule, "apiGroups").([]any), fmt.Sprint(at(rule, "resources"))
				core := slices.Contains(groups, any("")) || slices.Contains(groups, any("*"))
				if core && regexp.MustCompile(`\*|/(proxy|exec|attach|portforward)`).MatchString(resources) {
					t.Errorf("%s: %s may %v %s of %q", filepath.Base(values), role, at(rule, "verbs"), resources, groups)
				}
			}
		}
	}
}

// Names are strings for the API server, and 91000 is none in YAML unless it is quoted.
func TestNamesThatLookLikeNumbersAreStrings(t *testing.T) {
	t.Parallel()
	const names = "controller.serviceAccount.name=91002,webhook.serviceAccount.name=91003,webhook.clientCASecret=91004,priorityClass.name=91005," +
		"certificates.self.secretName=91008,certificates.certManager.secretName=91009,certificates.provided.secretName=91010"
	for name, values := range valueSets(t) {
		text, err := run(t, helm4, "template", "91000", "weir", "--namespace", "91001", "--kube-version", "1.36.3", "--values", values,
			"--set", "priorityClass.create=false", "--set-string", names)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, o := range manifests(t, text) {
			for _, where := range numbersLikeNames(o) {
				t.Errorf("%s: %s: %s is a number", name, at(o, "metadata", "name"), where)
			}
		}
	}
}

// numbersLikeNames is where there are numbers that are names.
func numbersLikeNames(v any) (where []string) {
	switch v := v.(type) {
	case object:
		for k, c := range v {
			for _, w := range numbersLikeNames(c) {
				where = append(where, "."+k+w)
			}
		}
	case []any:
		for _, c := range v {
			where = append(where, numbersLikeNames(c)...)
		}
	case int:
		if v >= 91000 && v <= 91010 {
			return []string{""}
		}
	}
	return where
}

func knownValue(values object, path []string) bool {
	v, ok := values[path[0]]
	if !ok || len(path) == 1 {
		return ok
	}
	section, _ := v.(object)
	return knownValue(section, path[1:])
}
