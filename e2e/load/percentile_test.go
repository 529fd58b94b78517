//go:build full

package load

import (
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	upTo := func(n int) (v []time.Duration) {
		for i := range n {
			v = append(v, time.Duration(n-i)) // from the longest to the shortest
		}
		return v
	}
	for _, c := range []struct {
		of   []time.Duration
		p    int
		want time.Duration
	}{
		{nil, 99, 0},
		{upTo(1), 1, 1}, {upTo(1), 99, 1},
		{upTo(3), 50, 2}, {upTo(4), 50, 2},
		{upTo(100), 99, 99}, {upTo(101), 99, 100}, {upTo(1000), 99, 990},
		{upTo(7), 100, 7},
	} {
		v := len(c.of)
		if got := Percentile(c.of, c.p); got != c.want {
			t.Errorf("the lowest %d hundredths of 1 to %d end at %d, want %d", c.p, v, got, c.want)
		}
		if v > 1 && c.of[0] < c.of[1] {
			t.Error("it has sorted what belongs to the caller")
		}
	}
}
