package brake

import "k8s.io/apimachinery/pkg/runtime/schema"

// Why is why a kind of owners is held; "" if it is not.
func (l *Ledger) Why(owners schema.GroupResource) string {
	if held := l.holds(owners); held != nil {
		return held.why
	}
	return ""
}
