package policies

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a refusal prints is pasted up to the end of its line: nothing may come behind a value.
func TestCommandsEndTheirLine(t *testing.T) {
	set := Build(nil, sources(t, "p.yaml", delpol("a", "protection: {maxDependents: 1, confirmation: Required}")+
		delpol("b", "protection: {confirmation: Required}")+delpol("c", "propagation: {default: Foreground, allowed: [Foreground, Background]}")), Options{})
	q := web(nil)
	q.Facts.Dependents = func(s Search, _ int) (AlsoDeleted, bool) {
		return AlsoDeleted{Kinds: []KindCount{{Resource: "pods", Count: 3}}}, true
	}
	commands := func(options map[string]any) (out []string) {
		q.Options = options
		for line := range strings.Lines(set.Decide(q).Message) {
			if _, command, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "kubectl "); ok {
				out = append(out, command)
			}
		}
		return out
	}
	const confirm = "annotate deployments.apps web -n shop --overwrite weir.dev/confirm-delete=u1"
	if diff := cmp.Diff([]string{confirm, confirm}, commands(nil)); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"delete deployments.apps web -n shop --cascade=foreground", confirm}, commands(map[string]any{"propagationPolicy": "Orphan"})); diff != "" {
		t.Errorf("commands of what is not allowed (-want +got):\n%s", diff)
	}
}

// Whoever asks for Background, as kubectl does, and gets something else, is told why it takes its
// time.
func TestBackgroundThatIsMadeAnotherIsTold(t *testing.T) {
	for _, c := range []struct {
		rest, asked string
		want        []string
	}{
		{"propagation: {default: Foreground}", "Background", []string{`deployments.apps "web" in namespace "shop" is deleted with propagation Foreground, not Background (DeletionPolicy "p")`}},
		{"propagation: {default: Orphan}", "Background", []string{`deployments.apps "web" in namespace "shop" is deleted with propagation Orphan, not Background (DeletionPolicy "p")`}},
		{"propagation: {default: Foreground}", "", nil},
		{"propagation: {default: Foreground}", "Foreground", nil},
		{"propagation: {default: Foreground}", "Orphan", nil},
		{"propagation: {default: Background}", "Background", nil},
		{"propagation: {default: Foreground}, protection: {confirmation: Required}", "Background", nil}, // refused
	} {
		q := web(nil)
		if c.asked != "" {
			q.Options = map[string]any{"propagationPolicy": c.asked}
		}
		d := Build(nil, sources(t, "p.yaml", delpol("p", c.rest)), Options{}).Decide(q)
		if diff := cmp.Diff(c.want, d.Warnings); diff != "" {
			t.Errorf("%s, %q (-want +got):\n%s", c.rest, c.asked, diff)
		}
	}
}
