package live

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestClockFollowsTheAPIServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Clock{}
		at := func(ahead time.Duration) string { return time.Now().Add(ahead).UTC().Format(http.TimeFormat) }
		for _, step := range []struct {
			date string
			want time.Duration
		}{
			{"", 0}, {"yesterday", 0}, // no sample: the next counts
		} {
			c.learn(step.date)
			if got := time.Until(c.Now()).Round(time.Second); got != step.want {
				t.Errorf("after %q it is %s ahead, want %s", step.date, got, step.want)
			}
		}
		for _, ahead := range []time.Duration{time.Minute, time.Second, -time.Hour, 0} {
			<-time.After(clockSamples)
			c.learn(at(ahead))
			want := ahead
			if ahead.Abs() < clockNoise {
				want = 0
			}
			if got := time.Until(c.Now()); got.Round(2*time.Second) != want.Round(2*time.Second) {
				t.Errorf("it is %s ahead, want %s", got, want)
			}
			c.learn(at(24 * time.Hour)) // so soon again it is not looked at
			if got := time.Until(c.Now()); got > 12*time.Hour {
				t.Errorf("it is %s ahead: a second look at once", got)
			}
		}
	})
}
