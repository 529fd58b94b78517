package follow

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A kind that came after a namespace began to terminate cannot have content in it. So only a
// discovery that began later than that counts, however late an earlier one ends.
func TestOnlyADiscoveryThatBeganSinceThenCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiscoveries()
		is := func(when string, since time.Time, done bool, failure string) {
			t.Helper()
			if got, why, _ := d.Since(since); got != done || why != failure {
				t.Errorf("%s: done=%t, failure %q; want %t, %q", when, got, why, done, failure)
			}
		}
		is("at the start", time.Time{}, false, "")
		early := d.begins()
		<-time.After(time.Second)
		deleted := time.Now()
		_, _, next := d.Since(deleted)
		<-time.After(time.Second)
		d.ended(early, nil)
		select {
		case <-next:
		default:
			t.Error("who waits is not notified when one has ended")
		}
		is("of one that began before", deleted, false, "")
		is("of one that began then", early, true, "")
		late := d.begins()
		d.ended(late, errors.New("no"))
		is("of one that failed", deleted, false, "no")
		is("of one that failed, for who asked before", early, true, "no")
		d.ended(d.begins(), nil)
		is("of one since then", deleted, true, "")
	})
}

// TestManyWishesAreOneDiscovery, and what is wished while one is under way is another: it may not
// have seen what came since it began.
func TestManyWishesAreOneDiscovery(t *testing.T) {
	d := newDiscoveries()
	wanted := func() bool { return len(d.asked) > 0 }
	for range 3 {
		d.Want()
	}
	if !wanted() {
		t.Error("none is wanted")
	}
	began := d.begins()
	if wanted() {
		t.Error("the wishes of before are still there when it begins")
	}
	d.Want()
	if d.ended(began, nil); !wanted() {
		t.Error("what was wished meanwhile is forgotten")
	}
}

// A burst of deletions does not ask for one discovery after the other, and none waits for longer
// than a quarter of a second for its turn.
func TestDiscoveriesRestAsLongAsTheyTook(t *testing.T) {
	for took, rests := range map[time.Duration]time.Duration{
		0: 0, 20 * time.Millisecond: 200 * time.Millisecond, 25 * time.Millisecond: longestPause,
		30 * time.Second: longestPause,
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDiscoveries()
			if got := d.rest(); got > 0 {
				t.Errorf("the first waits for %s", got)
			}
			began := d.begins()
			<-time.After(took)
			d.ended(began, nil)
			if got := d.rest(); got != rests {
				t.Errorf("after one that took %s the next waits for %s, want %s", took, got, rests)
			}
		})
	}
}
