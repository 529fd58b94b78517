package brake

import "k8s.io/apimachinery/pkg/runtime/schema"

// Why is why a kind of owners is held; "" if it is not.
func (l *Ledger) Why(owners schema.GroupResource) string {
	if held := l.holds(owners); held != nil {
		return held.why
	}
	return ""
}

// HeldKinds is of how many kinds of owners something is held.
func (b *Brake) HeldKinds() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, acc := range b.ledger.kinds {
		if acc.held != nil {
			n++
		}
	}
	return n
}
