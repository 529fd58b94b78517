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
	for name, c := range map[string]struct{ was, is, want string }{
		"nothing":             {item("a", `, "step": 2`), item("a", `, "step": 2`), ""},
		"something between":   {item("a", `, "step": 1`) + "," + item("b", `, "step": 2`), item("a", `, "step": 1`) + "," + item("new", `, "step": 2`) + "," + item("b", `, "step": 3`), "+ configmaps/x/new: is new in the plan: is deleted\n"},
		"order":               {item("a", `, "step": 1`) + "," + item("b", `, "step": 2`), item("a", `, "step": 1`) + "," + item("b", `, "step": 1`), "~ configmaps/x/b: goes: in step 1 of what both plans delete; before, in step 2 of what both plans delete\n"},
		"outcome":             {item("a", ``), strings.Replace(item("a", ``), `"delete"`, `"release"`, 1), "~ configmaps/x/a: is kept and loses a reference now; before, it is deleted\n"},
		"new finalizer":       {item("a", ``), item("a", `, "finalizers": ["example.com/hold"]`), "~ configmaps/x/a: waits for finalizers: example.com/hold; before, none\n"},
		"finalizer gone":      {item("a", `, "finalizers": ["example.com/hold"]`), item("a", ``), "~ configmaps/x/a: waits for finalizers: none; before, example.com/hold\n"},
		"finalizers in turn":  {item("a", `, "finalizers": ["x/a", "x/b"]`), item("a", `, "finalizers": ["x/b", "x/a"]`), ""},
		"after a finalizer":   {item("a", ``), item("a", `, "stage": 1`), "~ configmaps/x/a: goes: in step 1 of what both plans delete, after finalizers of other objects come off; before, in step 1 of what both plans delete\n"},
		"grace":               {item("a", `, "gracePeriodSeconds": 30`), item("a", `, "gracePeriodSeconds": 600`), "~ configmaps/x/a: has time to stop: 600s; before, 30s\n"},
		"grace unknown":       {item("a", `, "gracePeriodSeconds": 30`), item("a", ``), ""},
		"propagation":         {item("a", ``), item("a", `, "policy": "p"`), "~ configmaps/x/a: is deleted: background by policy p; before, background\n"},
		"doubt":               {item("a", ``), item("a", `, "doubt": "no labels"`), "~ configmaps/x/a: what policies say about it: no labels; before, known\n"},
		"gone":                {item("a", ``), "", "- configmaps/x/a: is not in the plan any more\n"},
		"not read":            {item("a", ``), `],` + unread("configmaps") + `,"more":[`, "? configmaps could not be read, and could before: no\n? configmaps/x/a: is not in the plan any more, because its kind could not be read; before, it is deleted\n"},
		"group not heard":     {item("a", ``), `],` + unread("all of v1") + `,"more":[`, "? all of v1 could not be read, and could before: no\n? configmaps/x/a: is not in the plan any more, because its kind could not be read; before, it is deleted\n"},
		"read again":          {`],` + unread("secrets") + `,"more":[`, "", "+ secrets could be read, and could not before\n"},
		"refused":             {"", `],` + refused("no") + `,"more":[`, "✗ configmaps/x/boss: a policy refuses the delete now: no\n"},
		"refused anew":        {`],` + refused("no") + `,"more":[`, `],` + refused("never") + `,"more":[`, "✗ configmaps/x/boss: a policy refuses the delete with other words: never\n"},
		"refused as before":   {`],` + refused("no") + `,"more":[`, `],` + refused("no") + `,"more":[`, ""},
		"not refused":         {`],` + refused("no") + `,"more":[`, `], "verdicts": [{"object": ` + root + `}], "more": [`, "+ configmaps/x/boss: no policy refuses the delete any more\n"},
		"policies gone":       {`],` + refused("no") + `,"more":[`, ``, "+ configmaps/x/boss: no policy refuses the delete any more\n"},
		"policies not read":   {`],` + refused("no") + `,"more":[`, `],` + unread("deletionpolicies.weir.dev") + `,"more":[`, "? configmaps/x/boss: what policies say about its delete is not known any more\n? deletionpolicies.weir.dev could not be read, and could before: no\n"},
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
			if err := changes.Draw(&out, &is, Style{}); err != nil {
				t.Fatal(err)
			}
			told, _, _ := strings.Cut(out.String(), "\n\n")
			if c.want == "" {
				told, _, _ = strings.Cut(out.String(), "\n")
				c.want = "The plan is the same as before.\n"
			}
			if diff := cmp.Diff(c.want, told+"\n"); diff != "" || changes.Any() != (c.want != "The plan is the same as before.\n") {
				t.Errorf("any: %t, -want +told:\n%s", changes.Any(), diff)
			}
			if !strings.HasSuffix(out.String(), "\n"+is.Summary()+"\n") {
				t.Errorf("the last line is not what the plan comes to:\n%s", &out)
			}
		})
	}
}

// TestChangedRootsOfAPlan: a root that is gone, or another one, is a change, and told once.
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
		"! configmaps/x/boss: is gone: nothing of that name is deleted any more\n\nThe plan has changed in 1 object.\nPlan: nothing is deleted.\n":         plan(),
		"! configmaps/x/boss: is another object now: its uid is boss-2, and was boss-1\n\nThe plan has changed in 1 object.\nPlan: 1 object is deleted.\n": plan(object("2")),
	} {
		was := plan(object("1"))
		if len(is.Roots) == 0 {
			was.Unread = []Unread{{Kind: "secrets", Reason: "no"}} // of which nothing is known now, either
		}
		var out strings.Builder
		if err := is.ChangesSince(was).Draw(&out, is, Style{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Error(diff)
		}
	}
}
