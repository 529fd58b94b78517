package drain

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// TestScripts plays testdata/*.txt. A script builds up what is known of a namespace and asks for
// the next step and the conditions:
//
//	waves          one wave a line: NAME: [timeout=D] [proceed] RESOURCE.GROUP …; no kinds means all that
//	               no other wave names, and otherwise that goes last
//	kinds          one kind a line: RESOURCE.GROUP [wave=NAME] [complete] [total=N] [terminating=N]
//	set            changes a kind: RESOURCE.GROUP [wave=NAME] [listed] [[un]tried] [total=N] [terminating=N]
//	               [refused="…"] [unreadable="…"] [first=NAMESPACE/NAME] [dies] [finalizer=NAME] [carries=NAME]
//	at             the wave under way and its age: NAME DURATION
//	companion      another controller finalizes
//	unrecorded     why it is not recorded, and is to be; none: it is
//	finalizers     one a line: NAME N
//	undiscovered   one API group a line
//	discovery      done; none; or none and why, as the answers stand since the namespace began to terminate
//	next           prints the step
//	conditions     prints the conditions at that step
func TestScripts(t *testing.T) {
	scripts := 0
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		scripts++
		s := script{State: State{Waves: DefaultWaves(), Finalizers: map[string]int{}, Discovered: true}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if err := play(&s, d); err != nil {
				d.Fatalf(t, "%v", err)
			}
			switch d.Cmd {
			case "next":
				return s.show(Next(s.State))
			case "conditions":
				var b strings.Builder
				for _, c := range Conditions(s.State, Next(s.State)) {
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

// script is what is known of a namespace, and the wave of each kind.
type script struct {
	State
	named []sets.Set[schema.GroupResource] // by wave; nil: kinds that no other wave names
}

func (s *script) show(step Step) string {
	words := []string{step.Verb.String()}
	for _, k := range step.Kinds {
		words = append(words, k.String())
	}
	if step.Verb == Delete || step.Verb == Wait {
		words = append(words, "wave="+s.Waves[step.Wave].Name)
	}
	if step.Current != step.Wave {
		words = append(words, "current="+s.Waves[step.Current].Name)
	}
	if step.TimedOut {
		words = append(words, "timed-out")
	}
	if step.Recheck > 0 {
		words = append(words, "recheck="+step.Recheck.String())
	}
	return strings.Join(words, " ") + "\n" + step.Why + "\n"
}

func play(s *script, d *datadriven.TestData) error {
	switch d.Cmd {
	case "waves":
		s.Waves, s.named = nil, nil
	case "companion":
		s.Companion = true
	case "unrecorded":
		s.Unrecorded = ""
	}
	for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := s.line(d.Cmd, line); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	return nil
}

func (s *script) line(verb, line string) (err error) {
	name, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "waves":
		return s.wave(strings.TrimSuffix(name, ":"), strings.Fields(rest))
	case "kinds", "set":
		return s.kind(verb == "kinds", schema.ParseGroupResource(name), split(rest))
	case "finalizers":
		s.Finalizers[name], err = strconv.Atoi(rest)
	case "at":
		if s.Current, err = s.find(name); err == nil {
			s.Age, err = time.ParseDuration(rest)
		}
	case "undiscovered":
		s.Undiscovered = append(s.Undiscovered, line)
	case "discovery":
		s.Discovered, s.DiscoveryFailure = name == "done", rest
	case "unrecorded":
		s.Unrecorded = line
	case "next", "conditions", "companion":
		return errors.New("wants no lines")
	default:
		return fmt.Errorf("no verb %q", verb)
	}
	return err
}

func (s *script) wave(name string, words []string) (err error) {
	w, named := Wave{Name: name}, sets.Set[schema.GroupResource](nil)
	for _, word := range words {
		if timeout, ok := strings.CutPrefix(word, "timeout="); ok {
			if w.Timeout, err = time.ParseDuration(timeout); err != nil {
				return err
			}
		} else if word == "proceed" {
			w.Proceed = true
		} else {
			named = named.Union(sets.New(schema.ParseGroupResource(word)))
		}
	}
	s.Waves, s.named = append(s.Waves, w), append(s.named, named)
	return nil
}

func (s *script) find(wave string) (int, error) {
	i := slices.IndexFunc(s.Waves, func(w Wave) bool { return w.Name == wave })
	if i < 0 {
		return 0, fmt.Errorf("no wave %q", wave)
	}
	return i, nil
}

// waveOf returns the wave of a kind that names none itself.
func (s *script) waveOf(gr schema.GroupResource) int {
	if s.named == nil {
		return DefaultWave(gr)
	}
	rest := len(s.named) - 1
	for i, named := range s.named {
		if named.Has(gr) {
			return i
		}
		if named == nil {
			rest = i
		}
	}
	return rest
}

func (s *script) kind(fresh bool, gr schema.GroupResource, words []string) (err error) {
	wave := s.waveOf(gr)
	if i := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "wave=") }); i >= 0 {
		if wave, err = s.find(strings.TrimPrefix(words[i], "wave=")); err != nil {
			return err
		}
		words = slices.Delete(words, i, i+1)
	}
	if fresh {
		s.Kinds = append(s.Kinds, Kind{Kind: gr, Wave: wave})
	}
	i := slices.IndexFunc(s.Kinds, func(k Kind) bool { return k.Kind == gr && k.Wave == wave })
	if i < 0 {
		return errors.New("no such kind")
	}
	for _, word := range words {
		if err := s.Kinds[i].set(word); err != nil {
			return err
		}
	}
	return nil
}

func (k *Kind) set(word string) (err error) {
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "complete":
		k.Complete = true
	case "listed":
		k.Listed = true
	case "tried":
		k.Tried = true
	case "untried": // another pass
		k.Tried = false
	case "total":
		k.Total, err = strconv.Atoi(value)
	case "terminating":
		k.Terminating, err = strconv.Atoi(value)
	case "refused":
		k.Refused, err = strconv.Unquote(value)
	case "unreadable":
		k.Unreadable, err = strconv.Unquote(value)
	case "carries":
		if k.Finalizers == nil {
			k.Finalizers = map[string]int{}
		}
		k.Finalizers[value]++
	case "first":
		namespace, name, _ := strings.Cut(value, "/")
		k.First = &Object{Namespace: namespace, Name: name}
	case "dies":
		k.First.Terminating = true
	case "finalizer":
		k.First.Finalizers = append(k.First.Finalizers, value)
	default:
		err = fmt.Errorf("no word %q", key)
	}
	return err
}

// split splits at spaces outside quotes.
func split(s string) []string {
	quoted := false
	return strings.FieldsFunc(s, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	})
}

// TestNamespaceThatWeirRunsInIsNotDrained, whatever is in it. Beside a namespace controller Weir
// does not hold it.
func TestNamespaceThatWeirRunsInIsNotDrained(t *testing.T) {
	pods := Kind{Kind: schema.GroupResource{Resource: "pods"}, Complete: true, Total: 2}
	for _, kinds := range [][]Kind{nil, {pods}} {
		s := State{Waves: DefaultWaves(), Kinds: kinds, Discovered: true, Home: true}
		if step := Next(s); step.Verb != Wait || step.Why != homeStays {
			t.Errorf("%d kinds: %s, because %s", len(kinds), step.Verb, step.Why)
		}
		for _, c := range Conditions(s, Next(s)) {
			if c.Type == Draining && (c.Status != corev1.ConditionTrue || c.Reason != "Waiting" || c.Message != homeStays) {
				t.Errorf("%d kinds: condition %+v", len(kinds), c)
			}
		}
		s.Companion = true
		if step := Next(s); step.Why == homeStays {
			t.Errorf("%d kinds, beside a namespace controller: %s, because %s", len(kinds), step.Verb, step.Why)
		}
	}
}

// Users who create pods choose their finalizers, and a webhook chooses its words. The API server
// would not store a namespace that says all of them.
func TestTextOfConditionsIsBounded(t *testing.T) {
	var finalizers []string
	counts := map[string]int{}
	for i := range 2000 {
		f := fmt.Sprintf("%s.example.com/%04d", strings.Repeat("a", 240), i)
		finalizers, counts[f] = append(finalizers, f), 1
	}
	long := strings.Repeat("not today ", 1000)
	var refusals Refusals
	for i := range 10 {
		refusals.Add(fmt.Sprint(i, long))
	}
	s := State{Waves: DefaultWaves(), Finalizers: counts, Undiscovered: finalizers}
	for i := range 200 {
		gr := schema.GroupResource{Group: "example.com", Resource: fmt.Sprint("kind-", i)}
		s.Kinds = append(s.Kinds, Kind{Kind: gr, Wave: 1, Complete: true, Total: 1, Terminating: 1, Refused: refusals.String(), Unreadable: long,
			First: &Object{Namespace: "shop", Name: "web", Terminating: true, Finalizers: finalizers}})
	}
	for _, unreadable := range []bool{true, false} {
		for i := range s.Kinds {
			if !unreadable {
				s.Kinds[i].Unreadable = ""
			}
		}
		for _, c := range Conditions(s, Next(s)) {
			if len(c.Message) > mostMessage || !strings.HasSuffix(c.Message, "…") && c.Status == corev1.ConditionTrue {
				t.Errorf("%s: %d bytes: %.100s", c.Type, len(c.Message), c.Message)
			}
		}
	}
	if n := len(refusals.String()); n > 2*MostReason {
		t.Errorf("refusals are %d bytes", n)
	}
	if n := len(DrainingCondition(Step{Why: long}).Message); n > mostMessage {
		t.Errorf("beside a namespace controller: %d bytes", n)
	}
}
