package brake

import "github.com/weir-dev/weir/controller/graph"

// InTurn is for tests.
var InTurn = inTurn

// Why is why a cause is held; "" if it is not.
func (l *Ledger) Why(c graph.Cause) string {
	if acc := l.causes[c]; acc != nil && acc.held != nil {
		return acc.held.why
	}
	return ""
}

// HeldCauses is how many causes are held.
func (b *Brake) HeldCauses() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, acc := range b.ledger.causes {
		if acc.held != nil {
			n++
		}
	}
	return n
}
