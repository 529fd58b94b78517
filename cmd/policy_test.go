package cmd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const goodPolicy = `apiVersion: weir.dev/v1beta1
kind: DeletionPolicy
metadata:
  name: good
spec:
  match:
    resources:
    - apiGroups: [apps]
      resources: [deployments]
  propagation:
    default: Foreground
`

const badPolicies = goodPolicy + `---
# Two things are wrong with this one.
apiVersion: weir.dev/v1beta1
kind: DeletionPolicy
metadata:
  name: bad
spec:
  match:
    resources:
    - apiGroups: [apps]
      resources: [deployments]
    matchConditions:
    - name: old
      expression: oldObject.metadata.name ==
  priority: 9999999
  protection: {maxDependents: 0}
---
apiVersion: weir.dev/v1
kind: DeletionPolicy
---
apiVersion: weir.dev/v1beta1
kind: DrainPolicy
metadata: {name: order}
spec:
  waves:
  - name: pods
    resources: [{apiGroups: [""], resources: [pods]}]
    onTimeout: Proceed
    timout: 5m
`

const likelyPolicy = `apiVersion: weir.dev/v1beta1
kind: DeletionPolicy
metadata: {name: pods}
spec:
  match:
    resources: [{apiGroups: [""], resources: [pods]}]
  propagation: {default: Foreground}
`

const caseFile = `policies: [policy.yaml]
cases:
- name: right
  request: {operation: DELETE, oldObject: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}}}
  expect: {allowed: true, propagation: Foreground, arm: true}
- name: wrong
  request: {operation: DELETE, oldObject: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}}}
  expect: {allowed: false, propagation: Orphan}
`

// weirCommand runs weir in a directory with files, and returns what it printed.
func weirCommand(t *testing.T, files map[string]string, args ...string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	var out bytes.Buffer
	root := Root()
	root.SilenceErrors = true
	root.SetOut(&out)
	root.SetArgs(args)
	err := root.Execute()
	return out.String(), err
}

func TestPolicyCommands(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		args  []string
		want  string
		err   string
	}{
		"lint is content": {
			files: map[string]string{"good.yaml": goodPolicy},
			args:  []string{"policy", "lint", "good.yaml"},
			want:  "1 policy, 0 errors, 0 warnings\n",
		},
		"lint names every error with its place": {
			files: map[string]string{"bad.yaml": badPolicies},
			args:  []string{"policy", "lint", "bad.yaml"},
			err:   "5 errors in the policies",
			want: `bad.yaml:28: apiVersion is "weir.dev/v1", want "weir.dev/v1beta1"
bad.yaml:12: DeletionPolicy "bad": spec.match.matchConditions[0].expression: compilation failed: ERROR: <input>:1:27: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER} | oldObject.metadata.name == | ..........................^
bad.yaml:12: DeletionPolicy "bad": spec.priority: 9999999: spec.priority in body should be less than or equal to 1000000
bad.yaml:31: DrainPolicy "order": spec.waves[0]: onTimeout Proceed needs timeoutSeconds: without it the wave waits for ever
bad.yaml:31: DrainPolicy "order": spec.waves[0].timout: unknown field
3 policies, 5 errors, 0 warnings
`,
		},
		"lint warns of what is likely not meant": {
			files: map[string]string{"pods.yaml": likelyPolicy},
			args:  []string{"policy", "lint", "pods.yaml"},
			want: `pods.yaml:1: DeletionPolicy "pods": spec.propagation: warning: it does not apply to pods: Weir's finalizer is not added to them
1 policy, 0 errors, 1 warning
`,
		},
		"lint judges the files together": {
			files: map[string]string{"a.yaml": goodPolicy, "b.yaml": goodPolicy},
			args:  []string{"policy", "lint", "a.yaml", "b.yaml"},
			err:   "1 error in the policies",
			want: `b.yaml:1: DeletionPolicy "good": metadata.name: not in force: a.yaml has a policy of this kind and name
2 policies, 1 error, 0 warnings
`,
		},
		"lint needs a policy": {
			files: map[string]string{"empty.yaml": "# nothing\n"},
			args:  []string{"policy", "lint", "empty.yaml"},
			err:   "1 error in the policies",
			want:  "empty.yaml: there is no policy in the file\n0 policies, 1 error, 0 warnings\n",
		},
		"lint needs the file": {
			args: []string{"policy", "lint", "missing.yaml"},
			err:  "read policies: open missing.yaml: no such file or directory",
		},
		"lint knows two outputs": {
			args: []string{"policy", "lint", "-o", "xml", "good.yaml"},
			err:  `--output "xml": must be text or json`,
		},
		"compile ends in an error where Weir is needed": {
			files: map[string]string{"good.yaml": goodPolicy},
			args:  []string{"policy", "compile", "good.yaml"},
			err:   "not all can be judged by the API server alone",
		},
		"compile takes policies that work": {
			files: map[string]string{"bad.yaml": badPolicies},
			args:  []string{"policy", "compile", "bad.yaml"},
			err:   `bad.yaml:28: apiVersion is "weir.dev/v1", want "weir.dev/v1beta1"`,
		},
		"compile knows versions that can judge": {
			args: []string{"policy", "compile", "--kubernetes", "1.29", "good.yaml"},
			err:  "--kubernetes 1.29: ValidatingAdmissionPolicies need 1.30",
		},
		"test shows what differs": {
			files: map[string]string{"cases/policy.yaml": goodPolicy, "cases/cases.yaml": caseFile},
			args:  []string{"policy", "test", "cases", "-v"},
			err:   "1 case failed",
			want: `ok    cases/cases.yaml: right
FAIL  cases/cases.yaml: wrong (- expected, + decided)
allowed:
  - false
  + true 
propagation:
  - Orphan
  + Foreground
1 passed, 1 failed
`,
		},
		"test needs cases": {
			files: map[string]string{"cases/policy.yaml": goodPolicy},
			args:  []string{"policy", "test", "cases"},
			err:   "find cases in cases: there is no YAML file with a list of cases",
		},
		"test needs policies that compile": {
			files: map[string]string{"policy.yaml": badPolicies, "cases.yaml": caseFile},
			args:  []string{"policy", "test", "."},
			err:   `compile policies of cases.yaml: policy.yaml:28: apiVersion is "weir.dev/v1", want "weir.dev/v1beta1"`,
		},
		"test does not take a misspelt expectation": {
			files: map[string]string{"policy.yaml": goodPolicy, "cases.yaml": strings.ReplaceAll(caseFile, "propagation: Orphan", "spread: Orphan")},
			args:  []string{"policy", "test", "."},
			err:   `read cases of cases.yaml: error unmarshaling JSON: while decoding JSON: json: unknown field "spread"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := weirCommand(t, c.files, c.args...)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != c.err {
				t.Errorf("error %q, want %q", text, c.err)
			}
		})
	}
}

func TestPolicyLintInJSON(t *testing.T) {
	out, err := weirCommand(t, map[string]string{"bad.yaml": badPolicies}, "policy", "lint", "-o", "json", "bad.yaml")
	if err == nil {
		t.Error("errors are no failure")
	}
	var got struct {
		Policies int
		Problems []struct {
			Policy  struct{ Kind, Name string }
			File    string
			Line    int
			Field   string
			Message string
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if got.Policies != 3 || len(got.Problems) != 5 {
		t.Errorf("%d policies and %d problems, want 3 and 5:\n%s", got.Policies, len(got.Problems), out)
	}
	if p := got.Problems[2]; p.Policy.Name != "bad" || p.Line != 12 || p.Field != "spec.priority" || p.File != "bad.yaml" {
		t.Errorf("a problem without its place: %+v", p)
	}
}

func TestPolicyCRDsPrintsAll(t *testing.T) {
	out, err := weirCommand(t, nil, "policy", "crds")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out, "\nkind: CustomResourceDefinition\n"); n != 6 {
		t.Errorf("%d CustomResourceDefinitions", n)
	}
}
