//go:build full

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// wanted is a cause that why has to tell: who has to act, and what it says, or gives as evidence,
// besides. OWNER stands for the object.
type wanted struct {
	actor string
	says  []string
}

// toldCause is a cause as why tells it.
type toldCause struct {
	What, Actor string
	Evidence    []string
}

// suffers is an object with its faults.
type suffers struct {
	name string
	all  []fault
}

// wrong is what is wrong about what was told of it: a cause that is missing, or told twice, and one
// that it does not have.
func (s suffers) wrong(all []toldCause) (out []string) {
	byActor := map[string]string{}
	for _, c := range all {
		if byActor[c.Actor] != "" {
			out = append(out, fmt.Sprintf("%s: %q is told to have to act twice", s.name, c.Actor))
		}
		byActor[c.Actor] = strings.Join(append([]string{c.What}, c.Evidence...), "\n")
	}
	has := map[string]bool{}
	for _, f := range s.all {
		for _, c := range f.causes {
			has[c.actor] = true
			text, ok := byActor[c.actor]
			if !ok {
				out = append(out, fmt.Sprintf("%s, %s: it is not told that %q has to act", s.name, f.name, c.actor))
			}
			for _, word := range c.says {
				if word = strings.ReplaceAll(word, "OWNER", s.name); ok && !strings.Contains(text, word) {
					out = append(out, fmt.Sprintf("%s, %s: about %q it is not told: %s", s.name, f.name, c.actor, word))
				}
			}
		}
	}
	for actor, text := range byActor {
		if !has[actor] {
			out = append(out, fmt.Sprintf("%s: %q is told to have to act, and has not: %s", s.name, actor, text))
		}
	}
	slices.Sort(out)
	return out
}

// wrongCauses asks why, and returns what is wrong about the answer.
func (w *fixture) wrongCauses(s suffers) []string {
	w.Helper()
	text := w.mustAsk("why", "secret", s.name, "-o", "json")
	var answer struct{ Causes []toldCause }
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		w.Fatal(err)
	}
	return s.wrong(answer.Causes)
}

// awaitCauses waits until why tells the causes that an object has, and no others.
func (w *fixture) awaitCauses(s suffers) {
	w.Helper()
	var wrong []string
	defer func() {
		if w.Failed() {
			w.Logf("%s:\n%s", s.name, strings.Join(wrong, "\n"))
		}
	}()
	w.until("why tells the causes of "+s.name, func(context.Context) (bool, error) {
		wrong = w.wrongCauses(s)
		return len(wrong) == 0, nil
	})
}

// TestWrongCausesAreFound: what holds why against the faults finds each way in which it can be
// wrong.
func TestWrongCausesAreFound(t *testing.T) {
	s := suffers{"boss", []fault{
		{name: "held", causes: []wanted{{"backup", []string{"the finalizer b holds it", `by "x"`}}}},
		{name: "leaf", causes: []wanted{{"collector", []string{"it waits for leaf-OWNER"}}}},
	}}
	backup, collector := toldCause{"the finalizer b holds it", "backup", []string{`written by "x"`}}, toldCause{"it waits for leaf-boss", "collector", nil}
	for _, c := range []struct {
		all  []toldCause
		want string
	}{
		{[]toldCause{backup, collector}, ""},
		{[]toldCause{backup}, `boss, leaf: it is not told that "collector" has to act`},
		{[]toldCause{backup, collector, collector}, `boss: "collector" is told to have to act twice`},
		{[]toldCause{backup, collector, {"it is guarded", "anna", nil}}, `boss: "anna" is told to have to act, and has not: it is guarded`},
		{[]toldCause{backup, {"it waits for leaf-other", "collector", nil}}, `boss, leaf: about "collector" it is not told: it waits for leaf-boss`},
		{[]toldCause{{backup.What, "backup", nil}, collector}, `boss, held: about "backup" it is not told: by "x"`},
		{[]toldCause{backup, {collector.What, "anna", nil}}, `boss, leaf: it is not told that "collector" has to act` + "\n" + `boss: "anna" is told to have to act, and has not: it waits for leaf-boss`},
	} {
		if got := strings.Join(s.wrong(c.all), "\n"); got != c.want {
			t.Errorf("%+v:\n%s\nwant:\n%s", c.all, got, c.want)
		}
	}
}
