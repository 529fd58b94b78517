//go:build full

package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ioctl has the kernel do something about a terminal.
func ioctl[T any](f *os.File, request uintptr, with *T) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(unsafe.Pointer(with))); errno != 0 {
		return fmt.Errorf("ioctl %#x of %s: %w", request, f.Name(), errno)
	}
	return nil
}

// terminal is a new one with so many columns: what is written to the second comes out of the first.
func terminal(t *testing.T, columns uint16) (reads, writes *os.File) {
	t.Helper()
	reads, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reads.Close() })
	var locked, number int32
	size := struct{ rows, columns, x, y uint16 }{rows: 24, columns: columns}
	err = errors.Join(ioctl(reads, syscall.TIOCSPTLCK, &locked), ioctl(reads, syscall.TIOCGPTN, &number), ioctl(reads, syscall.TIOCSWINSZ, &size))
	if err != nil {
		t.Fatal(err)
	}
	if writes, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	return reads, writes
}

// askIn is mustAsk in a terminal with so many columns.
func (w *fixture) askIn(columns uint16, args ...string) string {
	w.Helper()
	reads, writes := terminal(w.T, columns)
	cmd := exec.CommandContext(w.Context(), shared.plugin, append(args, "-n", w.namespace, "--kubeconfig", w.plane.Kubeconfig, "--cache-dir", w.TempDir())...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr, cmd.Env = writes, &said, append(os.Environ(), "NO_COLOR=1")
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	_ = writes.Close() // the process has its own
	out, err := io.ReadAll(reads)
	if err != nil && !errors.Is(err, syscall.EIO) { // so it ends when no process can write any more
		w.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		w.Fatalf("weir %s: %v\n%s%s", strings.Join(args, " "), err, out, said.String())
	}
	return strings.ReplaceAll(string(out), "\r\n", "\n")
}

// age is a time that is another one a moment later.
var age = regexp.MustCompile(`\b\d+(m\d+)?s\b`)

// TestAnswersFitNarrowTerminals: in a terminal of 40 columns each answer has all the words that it has in a pipe, and lines are broken between
// them. A name that is longer, and a command, stay in one piece.
func TestAnswersFitNarrowTerminals(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`
		cm  web
		sec web-5b7df8b546  owners=(web!block)
		cm  guarded         owners=(web!block)  finalizers=(example.com/guard)
		cm  other
		cm  shared          owners=(web, other)
		sec first
		sec second          owners=(first)
	`)
	w.create("cm", "unserved", []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Gizmo", Name: "g", UID: "1"}})
	w.fitsIn(40, []string{"plan", "configmap", "web"}, "! configmaps/guarded", "~ configmaps/shared", "- configmaps/web", "removes example.com/guard")
	w.fitsIn(40, []string{"tree", "configmap", "web"}, "▶ configmaps/web", "finalizers example.com/guard")
	w.delete("web", foreground)
	w.delete("first", background)
	w.awaitGone("first", "second", "web-5b7df8b546")
	w.awaitEvent("first", "Cascade")
	w.fitsIn(40, []string{"why", "configmap", "web"}, "Who has to act: the component behind the finalizer example.com/guard.", "To see more: kubectl weir tree -n "+w.namespace+" configmaps web")
	w.fitsIn(40, []string{"why", "secret", "second"}, "is not there.", "because of Secret "+w.namespace+"/first")
	w.fitsIn(40, []string{"pending"}, "configmaps/"+w.namespace+"/guarded", "the finalizer example.com/guard holds it")
	w.fitsIn(40, []string{"orphans"}, "configmaps/"+w.namespace+"/unserved", `the cluster serves no kind "Gizmo"`)
	w.fitsIn(40, []string{"history"}, "Secret "+w.namespace+"/first: 1 object that it owned was deleted by garbage collection within 1s: 1 secrets")
	w.unfinalize("guarded")
	w.awaitGone("web")
}

// fitsIn checks an answer in a terminal with so many columns.
func (w *fixture) fitsIn(columns uint16, args []string, says ...string) {
	w.Helper()
	whole, narrow := w.mustAsk(args...), w.askIn(columns, args...)
	words := func(text string) []string { return strings.Fields(age.ReplaceAllString(text, "AGE")) }
	if !slices.Equal(words(whole), words(narrow)) {
		w.Errorf("weir %s says other words in %d columns:\n%s\nand in a pipe:\n%s", strings.Join(args, " "), columns, narrow, whole)
	}
	w.mustSay(strings.Join(strings.Fields(narrow), " "), says...)
	for line := range strings.Lines(narrow) {
		// A symbol stands with what it is of; a command is to be copied.
		rest := strings.TrimSpace(strings.TrimLeft(line, " -!~?▶·"))
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > int(columns) && strings.Contains(rest, " ") && !strings.HasPrefix(rest, "kubectl ") {
			w.Errorf("weir %s in %d columns: %q", strings.Join(args, " "), columns, line)
		}
	}
}
