package words

import (
	"os/exec"
	"strings"
	"testing"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"web-1":                     "web-1",
		"system:node ünï":           "system:node ünï",
		"x\n\n- namespaces/prod":    `x\n\n- namespaces/prod`,
		"\x1b[2J\x1b[1;1Hdone":      `\x1b[2J\x1b[1;1Hdone`,
		"a\u202eb\u200bc\x00\u009b": `a\u202eb\u200bc\x00\u009b`,
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for text, want := range map[string]string{
		"":             "",
		"12345678":     "12345678",
		"123456789":    "12345…",
		"1234ä6789":    "1234…", // the letter would be cut in two
		"€€€€":         "€…",
		"1234\xff6789": "1234…",
	} {
		if got := Cut(text, 8); got != want {
			t.Errorf("%q is cut to %q, want %q", text, got, want)
		}
	}
}

// TestShell asks shells: whatever a name is, it is one word in one line, and nothing runs. What
// cannot be seen is the name itself to those that know $'…'.
func TestShell(t *testing.T) {
	for _, text := range []string{"web", "a b", "x; exit 1", "$(id)", "`id`", "it's", "-flag", "*", "~", `\`, "'", "''", "#", "!!", "%s", "€",
		"a\nb", "\n'; exit 1 #", "\x1b[2J'\\", "a\u202e7'$(id)"} {
		word := Shell(text)
		if strings.IndexFunc(word, unseen) >= 0 {
			t.Errorf("%q is more than a line: %q", text, word)
		}
		for _, shell := range []string{"sh", "bash"} {
			out, err := exec.CommandContext(t.Context(), shell, "-c", "printf '<%s>' "+word).Output()
			unknown := shell == "sh" && strings.HasPrefix(word, "$'") && !strings.Contains(string(out), "><")
			if err != nil || string(out) != "<"+text+">" && !unknown {
				t.Errorf("%q is %s to %s (%v)", text, out, shell, err)
			}
		}
	}
}

func TestObject(t *testing.T) {
	if got := Object("deployments.apps", "web"); got != "deployments.apps web" {
		t.Error(got)
	}
	for name, want := range map[string]string{"-n": "roles/-n", "a/b": "roles/a/b", "a b": "'roles/a b'", "x; id": "'roles/x; id'", "": "roles/"} {
		if got := Object("roles", name); got != want {
			t.Errorf("%q is named %s: kubectl could take it for something else", name, got)
		}
	}
}

func TestOneIsCountedAsOne(t *testing.T) {
	for n, want := range map[int64]string{0: "0 objects", 1: "1 object", 2: "2 objects", 21: "21 objects", 1 << 40: "1099511627776 objects"} {
		if got := Count(n, "object", "objects"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
