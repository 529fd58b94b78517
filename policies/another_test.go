package policies

import (
	"strings"
	"testing"
)

// An object that terminates can be deleted once more, and the API server then goes by the last that
// was asked for: what may not be asked for at first may not be asked for then. One that asks for
// nothing changes nothing, and is never refused.
func TestAnotherDeleteOfWhatTerminatesIsJudged(t *testing.T) {
	const (
		orphan  = "propagation: {default: Orphan, allowed: [Orphan]}"
		kept    = "propagation: {default: Background, dependents: [{apiGroups: [''], resources: [pods], action: Orphan}]}"
		limit   = "protection: {maxDependents: 1}"
		confirm = "protection: {confirmation: Required}"
	)
	for name, c := range map[string]struct {
		rest, finalizers string
		options          map[string]any
		refused          string
	}{
		"orphan first, then foreground":   {orphan, "orphan", asking("Foreground"), "may not be deleted with propagation policy Foreground: allowed is Orphan"},
		"orphan first, then plain":        {orphan, "orphan", nil, ""},
		"orphan first, then no options":   {orphan, "orphan", map[string]any{}, ""},
		"orphan, and again":               {orphan, "orphan", asking("Orphan"), ""},
		"by the old option":               {limit, "x", map[string]any{"orphanDependents": false}, "objects would also be deleted"},
		"foreground, some are to be kept": {kept, "x", asking("Foreground"), "some of its dependents are to be kept"},
		"foreground, and nothing holds":   {kept, "x", asking("Foreground"), "some of its dependents are to be kept"},
		"foreground, and Weir's holds":    {kept, "weir.dev/propagation", asking("Foreground"), ""},
		"plain, some are to be kept":      {kept, "x", nil, ""},
		"too many would be deleted":       {limit, "orphan", asking("Background"), "objects would also be deleted"},
		"they are kept":                   {limit, "x", asking("Orphan"), ""},
		"they are deleted already":        {limit, "foregroundDeletion", asking("Foreground"), ""},
		"too many, and plain":             {limit, "x", nil, ""},
		"nobody confirms it any more":     {confirm, "x", asking("Foreground"), ""},
	} {
		set := Build(nil, sources(t, "f", delpol("p", c.rest)), Options{})
		q := web(map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": anyList(strings.Fields(c.finalizers))})
		q.Options = c.options
		if strings.Contains(name, "hold") {
			q.Collector = WeirCollects
		}
		d := set.Decide(q)
		if d.Allowed != (c.refused == "") || !strings.Contains(d.Message, c.refused) || d.Enforced || d.Arm {
			t.Errorf("%s: %+v\nwant %s", name, d, c.refused)
		}
		for _, w := range set.Webhooks(keptKinds, nil) {
			if w.Webhook == WebhookDelete && c.refused != "" && !comes(t, w, &q) {
				t.Errorf("%s: it does not come to Weir", name)
			}
			if w.Webhook == WebhookDelete && len(c.options) == 0 && comes(t, w, &q) {
				t.Errorf("%s: it comes to Weir", name)
			}
		}
		q.User = User{Name: systemUsers[1]}
		if d := set.Decide(q); !d.Allowed {
			t.Errorf("%s: the collector is refused: %s", name, d.Message)
		}
	}
}

func asking(p string) map[string]any { return map[string]any{"propagationPolicy": p} }
