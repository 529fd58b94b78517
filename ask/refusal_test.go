package ask

import (
	"strings"
	"testing"
)

// TestErrorsMoveNoCursor: an API server passes on what webhooks and aggregated ones say, and users
// name what they have pasted.
func TestErrorsMoveNoCursor(t *testing.T) {
	for args, path := range map[string]string{
		"plan cm boss": "/configmaps/boss", "tree cm boss": "/configmaps/boss", "why cm boss": "/configmaps/boss", "history": "/events", "policies": "/configmaps/weir-file-policies",
		"history x\x1b[2Jevil/y": "none", "plan cm x\x1b[2Jevil": "none", "why x\x1b[2Jevil y": "none", "why cm x\x1b[2Jevil": "none", "held x\x1b[2Jevil": "none",
		"plan -f \x1b[2Jevil": "none", "pending": "/secrets",
	} {
		t.Run(args, func(t *testing.T) {
			w := newTown(t)
			w.refuse(path, 403, "Forbidden", "the webhook says \x1b[2Jevil\r\nincomplete: nothing")
			s := w.run(strings.Split(args, " ")...)
			if strings.ContainsAny(s.out+s.err, "\x1b\r") || !strings.Contains(s.err, `\x1b[2Jevil`) {
				t.Errorf("it prints %q, and says %q", s.out, s.err)
			}
		})
	}
}

// TestHistoryOfNoNameIsRefused: as all others refuse it, instead of telling that nothing is
// recorded of it.
func TestHistoryOfNoNameIsRefused(t *testing.T) {
	w := newTown(t)
	for _, args := range [][]string{{"history", "cm/"}, {"history", "cm", ""}, {"history", "/boss"}, {"history", ""}, {"why", "cm/"}} {
		if s := w.run(args...); s.failed == nil {
			t.Errorf("%q prints\n%s", args, s.out)
		}
	}
	w.run("history", "cm/").mustFail(t, "name one object, as in: deployment web, or deployment/web; or none, for all of the namespace")
}
