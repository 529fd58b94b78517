package live

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/weir-dev/weir/policies"
)

// awaitRead waits until files have been looked at twice more, and what was found is in force.
func (b *fixture) awaitRead() {
	b.Helper()
	<-time.After(2 * readEvery)
	b.settle()
}

func TestFilesOfADirectoryAreReadInTheirOrder(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "b.yml", policy("b", "0"))
	write(t, dir, "a.yaml", policy("a", "0"))
	write(t, dir, "c.json", `{"apiVersion":"weir.dev/v1beta1","kind":"DrainPolicy","metadata":{"name":"c"},"spec":{"waves":[{"name":"x","resources":[{"apiGroups":[""],"resources":["pods"]}]}]}}`)
	write(t, dir, ".hidden.yaml", "{")
	write(t, dir, "README.md", "{")
	write(t, dir, "d.yaml", "spec: [")
	if err := os.Mkdir(filepath.Join(dir, "e.yaml"), 0o755); err != nil {
		t.Fatal(err)
	}
	files, err := contents(dir)
	if err != nil {
		t.Fatal(err)
	}
	sources, problems, _ := parse(files, nil)
	var got []string
	for _, s := range sources {
		got = append(got, filepath.Base(s.File))
	}
	if want := "a.yaml b.yml c.json"; strings.Join(got, " ") != want {
		t.Errorf("policies of %q, want %q", strings.Join(got, " "), want)
	}
	if len(problems) != 1 || filepath.Base(problems[0].File) != "d.yaml" || problems[0].Message == "" {
		t.Errorf("problems %v, want one, of d.yaml", problems)
	}
}

func TestDirectoryThatIsNotThereIsAnError(t *testing.T) {
	err := CheckDir(filepath.Join(t.TempDir(), "none"))
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "read policy files: ") {
		t.Errorf("error %v", err)
	}
}

// A mounted ConfigMap changes by a link that is swapped: the files themselves do not change.
func TestSwappedFilesComeIntoForce(t *testing.T) {
	dir := t.TempDir()
	link := func(to string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, "..tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	for version, name := range map[string]string{"..1": "old", "..2": "new"} {
		if err := os.Mkdir(filepath.Join(dir, version), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, version), "p.yaml", policy(name, "0"))
	}
	link("..1")
	if err := os.Symlink("..data/p.yaml", filepath.Join(dir, "p.yaml")); err != nil {
		t.Fatal(err)
	}
	inFixture(t, dir, nil, func(b *fixture) {
		b.settle()
		b.wantInForce("at first", "old")
		changed := b.state.Changed()
		b.awaitRead()
		if fired(changed) {
			b.Error("files that are as they were were compiled again")
		}
		link("..2")
		b.awaitRead()
		b.wantInForce("after the swap", "new")
		if !fired(changed) {
			b.Error("nobody was told")
		}
	})
}

// Who writes a file in place empties it first, and a file that is empty has no policies.
func TestFileThatIsBeingWrittenSaysWhatItSaidBefore(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "p.yaml", policy("old", "0"))
	inFixture(t, dir, nil, func(b *fixture) {
		b.settle()
		look := func() {
			<-time.After(readEvery)
			b.settle()
		}
		for _, part := range []string{"", policy("new", "0")[:20], policy("new", "0")} {
			write(t, dir, "p.yaml", part)
			look()
			b.wantInForce("while the file is being written", "old")
		}
		look()
		b.wantInForce("when it stays as it is", "new")
		if err := os.Remove(filepath.Join(dir, "p.yaml")); err != nil {
			b.Fatal(err)
		}
		look()
		b.wantInForce("right after it was removed", "new")
		look()
		b.wantInForce("when it stays away")
	})
}

func TestUnreadableFilesKeepWhatWasRead(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", policy("a", "0"))
	inFixture(t, dir, nil, func(b *fixture) {
		b.settle()
		// A link to nowhere cannot be read, by root neither.
		if err := os.Symlink("nowhere", filepath.Join(dir, "b.yaml")); err != nil {
			b.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "a.yaml")); err != nil {
			b.Fatal(err)
		}
		b.awaitRead()
		b.awaitRead()
		b.wantInForce("while a file cannot be read", "a")
		if n := strings.Count(b.log.String(), "cannot read policy files"); n != 1 {
			b.Errorf("said %d times that files cannot be read, want once:\n%s", n, b.log)
		}
		if err := os.Remove(filepath.Join(dir, "b.yaml")); err != nil {
			b.Fatal(err)
		}
		b.awaitRead()
		b.wantInForce("when all can be read, and there are none")
	})
}

func TestUnreadableFilesAtTheStartHoldUpReadiness(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "late")
	inFixture(t, dir, nil, func(b *fixture) {
		b.settle()
		if err := b.state.Ready(); err == nil || err.Error() != "waiting for the policy files of "+dir {
			b.Errorf("ready: %v", err)
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		b.awaitRead()
		if err := b.state.Ready(); err != nil {
			b.Errorf("not ready when there is the directory: %v", err)
		}
	})
}

func TestFileThatMakesNoSenseIsAProblemAndHidesNoOther(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", policy("a", "0"))
	write(t, dir, "b.yaml", "spec: [")
	inFixture(t, dir, nil, func(b *fixture) {
		b.settle()
		b.wantInForce("beside a file that makes no sense", "a")
		if p := b.state.Problems(); len(p) != 1 || filepath.Base(p[0].File) != "b.yaml" {
			b.Errorf("problems %v, want one, of b.yaml", p)
		}
	})
}

func TestObjectTakesThePlaceOfAFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", policy("a", "0"))
	inFixture(t, dir, nil, func(b *fixture) {
		b.settle()
		b.api.Put("deletionpolicies", policy("a", "3"))
		b.settle()
		if s := b.state.Set().Statuses(); len(s) != 1 || s[0].File != "" {
			b.Errorf("in force are %+v, want the object", s)
		}
		if p := b.state.Problems(); len(p) != 1 || !strings.Contains(p[0].Message, "not in force") {
			b.Errorf("problems %v, want one of the file", p)
		}
	})
}

// A slip while a file is edited does not put its policies out of force.
func TestFileThatMakesNoSenseAnyMoreSaysWhatItSaidBefore(t *testing.T) {
	const manifest = "apiVersion: weir.dev/v1beta1\nkind: DeletionPolicy\nmetadata: {name: %s}\nspec: {}\n"
	names := func(sources []policies.Source) string {
		var out []string
		for _, s := range sources {
			out = append(out, (&unstructured.Unstructured{Object: s.Object}).GetName())
		}
		return strings.Join(out, " ")
	}
	var good map[string][]policies.Source
	for i, step := range []struct{ text, want, problem string }{
		{"kind: [", "", "read YAML"},                               // never good
		{fmt.Sprintf(manifest, "one"), "one", ""},                  //
		{"kind: [", "one", "what the file said before stays in f"}, //
		{fmt.Sprintf(manifest, "two") + "---\nkind: Nonsense\n", "one", "what the file said before stays in f"},
		{fmt.Sprintf(manifest, "three"), "three", ""},
	} {
		var sources []policies.Source
		var problems []policies.Problem
		sources, problems, good = parse([]file{{"a.yaml", []byte(step.text)}}, good)
		if got := names(sources); got != step.want {
			t.Errorf("step %d: %q are in force, want %q", i, got, step.want)
		}
		if (len(problems) == 0) != (step.problem == "") ||
			len(problems) > 0 && !strings.Contains(problems[0].Message, step.problem) {
			t.Errorf("step %d: problems %v, want %q", i, problems, step.problem)
		}
	}
	if sources, _, _ := parse(nil, good); len(sources) != 0 {
		t.Errorf("a file that is gone still says %s", names(sources))
	}
}
