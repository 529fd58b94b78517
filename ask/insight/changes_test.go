package insight

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// TestChangesOfAPlan: all that matters to who deletes is a change, and what only moves because
// something came in between is none.
func TestChangesOfAPlan(t *testing.T) {
	const root = `{"kind": "configmaps", "namespace": "x", "name": "boss", "uid": "boss"}`
	item := func(name, more string) string {
		return fmt.Sprintf(`{"kind": "configmaps", "namespace": "x", "name": %q, "uid": %q, "outcome": "delete", "propagation": "Background"%s}`, name, name, more)
	}
	refused := func(message string) string {
		return `"verdicts": [{"object": ` + root + `, "refused": true, "message": "` + message + `"}]`
	}
	unread := func(kind string) string { return `"unread": [{"kind": "` + kind + `", "reason": "no"}]` }
	const first = " in step 1 of what both plans delete"
	for name, c := range map[string]struct{ was, is, want string }{
		"nothing":             {item("a", `, "step": 2`), item("a", `, "step": 2`), ""},
		"something between":   {item("a", `, "step": 1`) + "," + item("b", `, "step": 2`), item("a", `, "step": 1`) + "," + item("new", `, "step": 2`) + "," + item("b", `, "step": 3`), "+ configmaps/x/new: is deleted\n"},
		"order":               {item("a", `, "step": 1`) + "," + item("b", `, "step": 2`), item("a", `, "step": 1`) + "," + item("b", `, "step": 1`), "~ configmaps/x/b: is deleted" + first + "; before: is deleted in step 2 of what both plans delete\n"},
		"outcome":             {item("a", ``), strings.Replace(item("a", ``), `"delete"`, `"release", "why": "owned by b"`, 1), "~ configmaps/x/a: is kept and loses a reference: kept: owned by b; before: is deleted\n"},
		"new finalizer":       {item("a", ``), item("a", `, "finalizers": ["example.com/hold"]`), "~ configmaps/x/a: is deleted" + first + ": waits until another component removes example.com/hold; before: is deleted" + first + "\n"},
		"finalizer gone":      {item("a", `, "finalizers": ["example.com/hold"]`), item("a", ``), "~ configmaps/x/a: is deleted" + first + "; before: is deleted" + first + ": waits until another component removes example.com/hold\n"},
		"after a finalizer":   {item("a", ``), item("a", `, "stage": 1`), "~ configmaps/x/a: is deleted" + first + ": after that; before: is deleted" + first + "\n"},
		"grace":               {item("a", `, "gracePeriodSeconds": 30`), item("a", `, "gracePeriodSeconds": 600`), "~ configmaps/x/a: is deleted" + first + ": up to 10m to stop; before: is deleted" + first + ": up to 30s to stop\n"},
		"grace unknown":       {item("a", `, "gracePeriodSeconds": 30`), item("a", ``), ""},
		"propagation":         {item("a", ``), item("a", `, "policy": "p"`), "~ configmaps/x/a: is deleted" + first + ": background by policy p; before: is deleted" + first + "\n"},
		"doubt":               {item("a", ``), item("a", `, "doubt": "no labels"`), "~ configmaps/x/a: is deleted" + first + ": a policy may change this: no labels; before: is deleted" + first + "\n"},
		"gone":                {item("a", ``), "", "- configmaps/x/a: not any more: is deleted\n"},
		"many":                {item("a", ``), item("a", ``) + "," + item("b", ``) + "," + item("c", ``), "+ configmaps/x/b, x/c: is deleted\n"},
		"not read":            {item("a", ``), `],` + unread("configmaps") + `,"more":[`, "~ configmaps/x/a: is not known: its kind could not be read; before: is deleted\n+ configmaps: could not be read: no\n"},
		"group not heard":     {item("a", ``), `],` + unread("all of v1") + `,"more":[`, "~ configmaps/x/a: is not known: its kind could not be read; before: is deleted\n+ all of v1: could not be read: no\n"},
		"read again":          {`],` + unread("secrets") + `,"more":[`, "", "- secrets: not any more: could not be read: no\n"},
		"refused":             {"", `],` + refused("no") + `,"more":[`, "+ the delete of configmaps/x/boss: is refused: no\n"},
		"refused anew":        {`],` + refused("no") + `,"more":[`, `],` + refused("never") + `,"more":[`, "~ the delete of configmaps/x/boss: is refused: never; before: is refused: no\n"},
		"refused as before":   {`],` + refused("no") + `,"more":[`, `],` + refused("no") + `,"more":[`, ""},
		"not refused":         {`],` + refused("no") + `,"more":[`, `], "verdicts": [{"object": ` + root + `}], "more": [`, "- the delete of configmaps/x/boss: not any more: is refused: no\n"},
		"policies gone":       {`],` + refused("no") + `,"more":[`, ``, "- the delete of configmaps/x/boss: not any more: is refused: no\n"},
		"policies not read":   {`],` + refused("no") + `,"more":[`, `],` + unread("deletionpolicies.weir.dev") + `,"more":[`, "~ the delete of configmaps/x/boss: is not judged: policies could not be read; before: is refused: no\n+ deletionpolicies.weir.dev: could not be read: no\n"},
		"judged, and nothing": {"", `], "verdicts": [{"object": ` + root + `}], "more": [`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var was, is Plan
			for text, p := range map[string]*Plan{c.was: &was, c.is: &is} {
				if err := json.Unmarshal([]byte(`{"roots": [`+root+`], "items": [`+text+`]}`), p); err != nil {
					t.Fatal(err)
				}
			}
			if c.was == c.is {
				is = was
			}
			changes := is.ChangesSince(&was)
			var out strings.Builder
			if err := DrawChanges(&out, changes, &is, Style{}); err != nil {
				t.Fatal(err)
			}
			told, _, _ := strings.Cut(out.String(), "\n\n")
			if c.want == "" {
				told, _, _ = strings.Cut(out.String(), "\n")
				c.want = "The plan is the same as before.\n"
			}
			if diff := cmp.Diff(c.want, told+"\n"); diff != "" || (len(changes) > 0) != (c.want != "The plan is the same as before.\n") {
				t.Errorf("%d changes, -want +told:\n%s", len(changes), diff)
			}
			if !strings.HasSuffix(out.String(), "\n"+is.Summary()+"\n") {
				t.Errorf("the last line is not what the plan comes to:\n%s", &out)
			}
		})
	}
}

// TestChangedRootsOfAPlan: a root that is gone, or another one, is a change.
func TestChangedRootsOfAPlan(t *testing.T) {
	object := func(uid types.UID) Object {
		return Object{Kind: "configmaps", Namespace: "x", Name: "boss", UID: "boss-" + uid}
	}
	plan := func(o ...Object) *Plan {
		p := &Plan{Roots: o}
		for _, o := range o {
			p.Items = append(p.Items, &Item{Object: o, Outcome: Deleted})
		}
		return p
	}
	for want, is := range map[string]*Plan{
		"- configmaps/x/boss: not any more: is deleted\n\nThe plan has changed in 1 point.\nPlan: nothing is deleted.\n":                                    plan(),
		"- configmaps/x/boss: not any more: is deleted\n+ configmaps/x/boss: is deleted\n\nThe plan has changed in 2 points.\nPlan: 1 object is deleted.\n": plan(object("2")),
	} {
		was := plan(object("1"))
		if len(is.Roots) == 0 {
			was.Unread = []Unread{{Kind: "secrets", Reason: "no"}} // of which nothing is known now, either
		}
		var out strings.Builder
		if err := DrawChanges(&out, is.ChangesSince(was), is, Style{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Error(diff)
		}
	}
}
