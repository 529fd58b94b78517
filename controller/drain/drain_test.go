package drain

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestScripts plays testdata/*.txt. A script builds up what is known of a namespace and asks for the
// next step and the conditions:
//
//	waves          one wave a line: NAME: RESOURCE.GROUP …; no kinds means all that no other wave names
//	kinds          one kind a line: RESOURCE.GROUP [complete] [blind] [total=N] [terminating=N]
//	set            changes a kind: RESOURCE.GROUP [listed] [tried] [total=N] [terminating=N]
//	               [refused="…"] [unreadable="…"]
//	finalizers     one a line: NAME N
//	undiscovered   one API group a line
//	next           prints the step
//	conditions     prints the conditions at that step
func TestScripts(t *testing.T) {
	scripts := 0
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		scripts++
		s := State{Waves: DefaultWaves(), Finalizers: map[string]int{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if err := play(&s, d); err != nil {
				d.Fatalf(t, "%v", err)
			}
			switch d.Cmd {
			case "next":
				return show(Next(s))
			case "conditions":
				var b strings.Builder
				for _, c := range Conditions(s, Next(s)) {
					fmt.Fprintf(&b, "%s %s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
				}
				return b.String()
			}
			return ""
		})
	})
	if scripts == 0 {
		t.Error("no script was played")
	}
}

func show(step Step) string {
	var kinds []string
	for _, k := range step.Kinds {
		kinds = append(kinds, k.String())
	}
	return strings.TrimSpace(step.Verb.String()+" "+strings.Join(kinds, " ")) + "\n" + step.Why + "\n"
}

func play(s *State, d *datadriven.TestData) error {
	if d.Cmd == "waves" {
		s.Waves = nil
	}
	for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		switch d.Cmd {
		case "waves":
			name, kinds, _ := strings.Cut(line, ":")
			w := Wave{Name: name}
			for _, k := range strings.Fields(kinds) {
				w.Kinds = append(w.Kinds, schema.ParseGroupResource(k))
			}
			s.Waves = append(s.Waves, w)
		case "kinds", "set":
			if err := setKind(s, d.Cmd == "kinds", line); err != nil {
				return err
			}
		case "finalizers":
			name, n, _ := strings.Cut(line, " ")
			count, err := strconv.Atoi(n)
			if err != nil {
				return err
			}
			s.Finalizers[name] = count
		case "undiscovered":
			s.Undiscovered = append(s.Undiscovered, line)
		case "next", "conditions":
		default:
			return fmt.Errorf("no verb %q", d.Cmd)
		}
	}
	return nil
}

func setKind(s *State, fresh bool, line string) error {
	name, rest, _ := strings.Cut(line, " ")
	gr := schema.ParseGroupResource(name)
	if fresh {
		s.Kinds = append(s.Kinds, Kind{Kind: gr})
	}
	var k *Kind
	for i := range s.Kinds {
		if s.Kinds[i].Kind == gr {
			k = &s.Kinds[i]
		}
	}
	if k == nil {
		return fmt.Errorf("no kind %s", name)
	}
	for _, word := range words(rest) {
		key, value, _ := strings.Cut(word, "=")
		var err error
		switch key {
		case "complete":
			k.Complete = true
		case "listed":
			k.Listed = true
		case "blind":
			k.Blind = true
		case "tried":
			k.Tried = true
		case "total":
			k.Total, err = strconv.Atoi(value)
		case "terminating":
			k.Terminating, err = strconv.Atoi(value)
		case "refused":
			k.Refused, err = strconv.Unquote(value)
		case "unreadable":
			k.Unreadable, err = strconv.Unquote(value)
		default:
			err = fmt.Errorf("no word %q", key)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	return nil
}

// words splits at spaces outside quotes.
func words(s string) []string {
	quoted := false
	return strings.FieldsFunc(s, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	})
}
