package insight

import (
	"fmt"
	"io"
	"strings"

	"github.com/weir-dev/weir/controller/words"
)

// outcomes are what they are called in a sentence about an object.
var outcomes = map[Outcome]string{
	Deleted: "is deleted", Released: "is kept and loses a reference", Unknown: "is kept, because its owners cannot be determined", Stuck: "is stuck",
}

// Draw writes changes. What the plan comes to now is the last line.
func (c *Changes) Draw(out io.Writer, now *Plan, style Style) error {
	var lines []string
	line := func(symbol, format string, args ...any) {
		lines = append(lines, style.paint(symbol, symbol+" "+fmt.Sprintf(format, args...)))
	}
	for _, r := range c.Roots {
		if r.Now == "" {
			line("!", "%s: is gone: nothing of that name is deleted any more", r.Object)
		} else {
			line("!", "%s: is another object now: its uid is %s, and was %s", r.Object, r.Now, r.UID)
		}
	}
	for _, v := range c.Verdicts {
		symbol, text := v.words()
		line(symbol, "%s: %s", v.Object, text)
	}
	for _, u := range c.Unread {
		line("?", "%s could not be read, and could before: %s", u.Kind, u.Reason)
	}
	for _, u := range c.Read {
		line("+", "%s could be read, and could not before", u.Kind)
	}
	for _, o := range c.Objects {
		symbol, text := o.words()
		line(symbol, "%s: %s", o.Object, text)
	}
	text := ""
	if lines = style.cut(lines); len(lines) > 0 {
		text = strings.Join(lines, "\n") + "\n\n"
	}
	_, err := io.WriteString(out, style.Fit(text+c.sum()+"\n"+now.Summary()+"\n"))
	return err
}

func (o *Change) words() (symbol, text string) {
	switch {
	case len(o.Differs) > 0:
		return "~", strings.Join(o.Differs, "; ")
	case o.Unread:
		return "?", "is not in the plan any more, because its kind could not be read; before, it " + outcomes[o.Was]
	case o.Was == "":
		return "+", "is new in the plan: " + outcomes[o.Is]
	case o.Is == "":
		return "-", "is not in the plan any more"
	}
	return "~", outcomes[o.Is] + " now; before, it " + outcomes[o.Was]
}

func (v *VerdictChange) words() (symbol, text string) {
	was, is := v.Was, v.Is
	if was == nil {
		was = &Verdict{}
	}
	switch {
	case is == nil:
		return "?", "what policies say about its delete is not known any more"
	case is.Refused && was.Refused:
		return "✗", "a policy refuses the delete with other words: " + is.Message
	case is.Refused:
		return "✗", "a policy refuses the delete now: " + is.Message
	case is.Doubt != "" && is.Doubt != was.Doubt:
		return "?", "it is not known what policies say about its delete: " + is.Doubt
	case was.Refused:
		return "+", "no policy refuses the delete any more"
	case was.Doubt != "":
		return "+", "it is known now what policies say about its delete"
	case len(is.Warnings) > 0:
		return "⚠", "policies warn otherwise than before: " + strings.Join(is.Warnings, "; ")
	}
	return "+", "no policy warns any more"
}

// sum says in a sentence what has changed.
func (c *Changes) sum() string {
	if !c.Any() {
		return "The plan is the same as before."
	}
	var parts []string
	if n := len(c.Objects) + len(c.Roots); n > 0 {
		parts = append(parts, "in "+words.Count(n, "object", "objects"))
	}
	if n := len(c.Verdicts); n > 0 {
		parts = append(parts, "in what policies say about "+words.Count(n, "delete", "deletes"))
	}
	if len(c.Unread)+len(c.Read) > 0 {
		parts = append(parts, "in what could be read")
	}
	return "The plan has changed " + strings.Join(parts, ", ") + "."
}
