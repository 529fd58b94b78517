package policies

import (
	"testing"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// Updates that change what an object declares come to Weir, also while it terminates, and no others
// do. The finalizer is added by those that make it needed.
func TestOnlyUpdatesOfADeclarationCome(t *testing.T) {
	set := Build(nil, sources(t, "f", delpol("p", "propagation: {annotation: Allow}")), Options{})
	says := func(word string, more ...string) map[string]any {
		annotations, meta := map[string]any{}, map[string]any{"uid": "u1"}
		if word != "" {
			annotations[v1beta1.PropagationAnnotation] = word
		}
		for _, m := range more {
			if m == "deletionTimestamp" {
				meta[m] = "2026-01-01T00:00:00Z"
				continue
			}
			annotations[m] = "x"
		}
		meta["annotations"] = annotations
		return meta
	}
	for name, c := range map[string]struct {
		was, is       map[string]any
		judged, stamp bool
	}{
		"set":                 {says(""), says("Orphan"), true, true},
		"changed":             {says("Orphan"), says("Foreground"), true, true},
		"taken off":           {says("Orphan"), says(""), true, true},
		"another annotation":  {says("Orphan"), says("Orphan", "example.com/a"), false, false},
		"while it terminates": {says("Orphan", "deletionTimestamp"), says("Background", "deletionTimestamp"), true, false},
		"another, while it does": {says("Orphan", "deletionTimestamp"),
			says("Orphan", "deletionTimestamp", "example.com/a"), false, false},
	} {
		q := web(c.is)
		q.Operation, q.Object, q.OldObject = Update, q.OldObject, web(c.was).OldObject
		if _, asked := asTheAPIServer(t, set, WebhookSelection, q); len(asked) > 0 != c.judged {
			t.Errorf("%s: judged by %v", name, asked)
		}
		if _, asked := asTheAPIServer(t, set, WebhookAddFinalizer, q); len(asked) > 0 != c.stamp {
			t.Errorf("%s: the finalizer is decided by %v", name, asked)
		}
	}
}
