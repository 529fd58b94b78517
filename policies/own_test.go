package policies

import "testing"

// Nobody would carry out the deletion of who carries out deletions.
func TestPropagationDoesNotApplyInWeirsOwnNamespace(t *testing.T) {
	list := sources(t, "f", delpol("p", "propagation: {default: Foreground, allowed: [Foreground]}"))
	q := web(nil) // in namespace shop
	q.Options = map[string]any{"propagationPolicy": "Orphan"}
	if d := Build(nil, list, Options{}).Decide(q); d.Allowed {
		t.Error("elsewhere, what is not allowed is allowed")
	}
	set := Build(nil, list, Options{Namespace: q.Namespace})
	if d := set.Decide(q); !d.Allowed || d.Shaped {
		t.Errorf("in Weir's own namespace: %+v", d)
	}
	if m, _ := set.StampFor(Stored(q.Kind, q.Resource, q.OldObject, nil)); m.By != "" {
		t.Errorf("stamped by %s", m.By)
	}
}
