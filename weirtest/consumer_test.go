package weirtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestConsumerKeepsItsVersions: a module on an older Kubernetes and Go that begins to use weirtest
// keeps the versions that it has.
func TestConsumerKeepsItsVersions(t *testing.T) {
	const goVersion, kubernetes = "1.24.0", "v0.34.3"
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": fmt.Sprintf("module example.com/operator\n\ngo %s\n\nrequire (\n\tgithub.com/weir-dev/weir/weirtest v0.0.0\n"+
			"\tk8s.io/client-go %s\n)\n\nreplace github.com/weir-dev/weir/weirtest => %s\n", goVersion, kubernetes, here),
		"operator_test.go": `package operator

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/weirtest"
)

func TestOperator(t *testing.T) { weirtest.Start(t, &rest.Config{}).WaitIdle(t.Context()) }
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run("mod", "tidy")
	run("vet", ".")
	if got := strings.TrimSpace(run("list", "-m", "-f", "{{.GoVersion}}")); got != goVersion {
		t.Errorf("the module's Go is %s now, and was %s", got, goVersion)
	}
	got := run("list", "-m", "k8s.io/client-go", "k8s.io/apimachinery", "k8s.io/api")
	want := fmt.Sprintf("k8s.io/client-go %[1]s\nk8s.io/apimachinery %[1]s\nk8s.io/api %[1]s\n", kubernetes)
	if got != want {
		t.Errorf("the versions of Kubernetes are\n%swant\n%s", got, want)
	}
}
