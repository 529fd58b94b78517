package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/weir-dev/weir/internal/tools/doctor"
)

// TestLintReadsWhatEditorsWrite: and of what is no policy it says where, and what is there.
func TestLintReadsWhatEditorsWrite(t *testing.T) {
	const fine = "1 policy, 0 errors, 0 warnings\n"
	laughs := "a0: &a0 [x]\n"
	for i := range 12 {
		laughs += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
	}
	for name, c := range map[string]struct {
		text string
		want string // of the last line if it is fine, or of the first
	}{
		"ends of lines of another system": {strings.ReplaceAll(goodPolicy, "\n", "\r\n"), fine},
		"several, with those ends":        {strings.ReplaceAll("---\n"+goodPolicy+"---\n# nothing\n", "\n", "\r\n"), fine},
		"a byte order mark":               {"\ufeff" + goodPolicy, fine},
		"no end of the last line":         {strings.TrimSuffix(goodPolicy, "\n"), fine},
		"JSON":                            {`{"apiVersion": "weir.dev/v1beta1", "kind": "DeletionPolicy", "metadata": {"name": "a"}, "spec": {"match": {"resources": [{"apiGroups": ["apps"], "resources": ["deployments"]}]}, "propagation": {"default": "Orphan"}}}`, fine},
		"what kubectl get prints":         {"apiVersion: v1\nkind: List\nitems: []\n", `f.yaml:1: apiVersion is "v1", want "weir.dev/v1beta1"`},
		"another kind":                    {"apiVersion: weir.dev/v1beta1\nkind: HeldCollection\n", `f.yaml:1: kind is "HeldCollection", want one of DeletionPolicy, DrainPolicy, OwnerReferencePolicy`},
		"a key that is there twice":       {goodPolicy + "spec: {}\n", `f.yaml:1: read YAML: yaml: unmarshal errors: line 12: key "spec" already set in map`},
		"a list":                          {"- a\n", "f.yaml:1: a policy "},
		"a word":                          {"policy\n", "f.yaml:1: a policy "},
		"bytes":                           {"\x00\x01\x7fELF", "f.yaml:1: read YAML: "},
		"the second document is broken":   {goodPolicy + "---\n{\n", "f.yaml:12: read YAML: "},
		"aliases without end":             {laughs, "f.yaml:1: read YAML: yaml: document contains excessive aliasing"},
		"nothing":                         {"", "f.yaml: there is no policy in the file"},
		"comments, twice":                 {"# a\n---\n# b\n", "f.yaml: there is no policy in the file"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := weirCommand(t, map[string]string{"f.yaml": c.text}, "policy", "lint", "f.yaml")
			if got := err == nil && out == c.want; c.want == fine && !got {
				t.Errorf("%v:\n%s", err, out)
			}
			if c.want != fine && (err == nil || !strings.HasPrefix(out, c.want)) {
				t.Errorf("%v:\n%s\nwant\n%s", err, out, c.want)
			}
		})
	}
}

// TestLintInJSONHasListsAlways: a program that reads it asks for the length of what is not there,
// too.
func TestLintInJSONHasListsAlways(t *testing.T) {
	for text, want := range map[string]string{
		goodPolicy:   `{"policies": 1, "problems": []}`,
		likelyPolicy: `{"policies": 1, "problems": [{"policy": {"Kind": "DeletionPolicy", "Name": "pods"}, "file": "f.yaml", "line": 1, "field": "spec.propagation", "message": "it does not apply to pods: Weir's finalizer is not added to them", "warning": true}]}`,
	} {
		out, err := weirCommand(t, map[string]string{"f.yaml": text}, "policy", "lint", "-o", "json", "f.yaml")
		var got, expected any
		if e := errors.Join(err, json.Unmarshal([]byte(out), &got), json.Unmarshal([]byte(want), &expected)); e != nil {
			t.Fatalf("%v:\n%s", e, out)
		}
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// TestNoCaseIsLeftOut: a file of cases that cannot be read, or only in part, is an error, and not a
// file that has none. The other cases pass.
func TestNoCaseIsLeftOut(t *testing.T) {
	right := strings.Split(caseFile, "- name: wrong")[0]
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"a slip in YAML":             {right + "  x: [\n", "read cases of cases/slip.yaml: "},
		"a tab":                      {right + "\t- name: x\n", "read cases of cases/slip.yaml: "},
		"cases that are no list":     {"policies: [policy.yaml]\ncases: {name: x}\n", "read cases of cases/slip.yaml: "},
		"cases that are nothing":     {"policies: [policy.yaml]\ncases:\n# - name: x\n", "read cases of cases/slip.yaml: it names no policies, or has no cases"},
		"no cases":                   {"policies: [policy.yaml]\ncases: []\n", "read cases of cases/slip.yaml: it names no policies, or has no cases"},
		"no policies":                {"cases: [{name: x}]\n", "read cases of cases/slip.yaml: it names no policies, or has no cases"},
		"two documents":              {right + "---\n" + right, "read cases of cases/slip.yaml: it has more than one document: each needs a file of its own"},
		"policies before, in it":     {goodPolicy + "---\n" + right, "read cases of cases/slip.yaml: it has more than one document: each needs a file of its own"},
		"a policy that is missing":   {strings.ReplaceAll(right, "policy.yaml", "none.yaml"), "read policies of cases/slip.yaml: open cases/none.yaml: no such file or directory"},
		"a request about nothing":    {"policies: [policy.yaml]\ncases: [{name: x, request: {operation: DELETE, oldObject: 7}, expect: {allowed: true}}]\n", `read case "x" of cases/slip.yaml: `},
		"a name that is there twice": {strings.Replace(right, "expect:", "expect: {allowed: false}\n  expect:", 1), "read cases of cases/slip.yaml: "},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"cases/policy.yaml": goodPolicy, "cases/right.yaml": right, "cases/slip.yaml": c.text}
			out, err := weirCommand(t, files, "policy", "test", "cases")
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %s; it prints\n%s", err, c.want, out)
			}
		})
	}
}

// TestCasesAreFoundWhereTheyAre: in subdirectories, in one file, by a link to a directory, and by
// both endings; templates and other files are no cases.
func TestCasesAreFoundWhereTheyAre(t *testing.T) {
	right := strings.Split(caseFile, "- name: wrong")[0]
	files := map[string]string{
		"cases/policy.yaml": goodPolicy, "cases/one.yaml": right, "cases/deeper/still/policy.yaml": goodPolicy, "cases/deeper/still/two.yml": right,
		"cases/template.yaml": "{{ if .Values.x }}\na: b\n{{ end }}\n", "cases/readme.md": "cases:\n- none\n", "cases/values.yaml": "a: [1]\n---\nb: 2\n",
		"cases/marked.yaml": "---\n" + right + "---\n# the end\n",
	}
	for dir, want := range map[string]string{
		"cases":          "3 passed, 0 failed\n",
		"cases/":         "3 passed, 0 failed\n",
		"link":           "3 passed, 0 failed\n",
		"cases/deeper":   "1 passed, 0 failed\n",
		"cases/one.yaml": "1 passed, 0 failed\n",
	} {
		t.Run(dir, func(t *testing.T) {
			at := t.TempDir()
			for name, text := range files {
				path := filepath.Join(at, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink("cases", filepath.Join(at, "link")); err != nil {
				t.Fatal(err)
			}
			out, err := weirCommand(t, nil, "policy", "test", at+"/"+dir)
			if err != nil || out != want {
				t.Errorf("%v:\n%s\nwant\n%s", err, out, want)
			}
		})
	}
}

// TestCRDsArePrintedAsKubectlReadsThem: several documents, each a whole definition.
func TestCRDsArePrintedAsKubectlReadsThem(t *testing.T) {
	out, err := weirCommand(t, nil, "policy", "crds")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(out), 4096); ; {
		var one apiextensionsv1.CustomResourceDefinition
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		names = append(names, one.Kind+" "+one.Name)
		if len(one.Spec.Versions) == 0 || one.Spec.Versions[0].Schema == nil {
			t.Errorf("%s has no schema", one.Name)
		}
	}
	const kind = "CustomResourceDefinition "
	want := []string{kind + "archivechunks.weir.dev", kind + "deletedtrees.weir.dev", kind + "deletionpolicies.weir.dev", kind + "drainpolicies.weir.dev", kind + "heldcollections.weir.dev", kind + "ownerreferencepolicies.weir.dev"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// fullDisk takes so many bytes, and then no more.
type fullDisk struct{ left int }

var errFull = errors.New("no space left on device")

func (d *fullDisk) Write(p []byte) (int, error) {
	if len(p) > d.left {
		return 0, errFull
	}
	d.left -= len(p)
	return len(p), nil
}

// TestWhatCannotBePrintedIsAnError: a list that is cut off would look like one with less in it.
func TestWhatCannotBePrintedIsAnError(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"policy.yaml": goodPolicy, "bad.yaml": likelyPolicy, "cases.yaml": strings.Split(caseFile, "- name: wrong")[0]} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for _, args := range []string{
		"policy lint policy.yaml", "policy lint bad.yaml", "policy lint -o json policy.yaml", "policy test . -v", "policy crds", "version",
	} {
		var whole bytes.Buffer
		root := Root()
		root.SetArgs(strings.Fields(args))
		root.SetOut(&whole)
		if err := root.Execute(); err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		for _, room := range []int{0, whole.Len() - 1} {
			root := Root()
			root.SilenceErrors = true
			root.SetArgs(strings.Fields(args))
			root.SetOut(&fullDisk{room})
			if err := root.Execute(); !errors.Is(err, errFull) {
				t.Errorf("%s, with room for %d of %d bytes: %v", args, room, whole.Len(), err)
			}
		}
	}
	for room := range 12 {
		if err := printFindings(&fullDisk{room}, []doctor.Finding{{Grade: doctor.OK, About: "a", Says: "b", Do: "c"}}); !errors.Is(err, errFull) {
			t.Errorf("a doctor, with room for %d bytes: %v", room, err)
		}
	}
}
