package await

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAPauseEndsWithItsTimeOrItsContext(t *testing.T) {
	for name, c := range map[string]struct {
		pause, ends, want time.Duration
		err               error
	}{
		"time":          {time.Second, time.Minute, time.Second, nil},
		"context":       {time.Minute, time.Second, time.Second, context.DeadlineExceeded},
		"none":          {0, time.Second, 0, nil},
		"ended already": {time.Second, 0, 0, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), c.ends)
				defer stop()
				began := time.Now()
				err := Pause(ctx, c.pause)
				if took := time.Since(began); took != c.want || !errors.Is(err, c.err) {
					t.Errorf("%s, %v, want %s, %v", took, err, c.want, c.err)
				}
			})
		})
	}
}

func TestAChangeWakesAllWhoWaitedForItAndNoneAfter(t *testing.T) {
	var c Change
	c.Notify() // of which no one hears
	first, same := c.Next(), c.Next()
	select {
	case <-first:
		t.Fatal("woken by what was before")
	default:
	}
	c.Notify()
	for _, waited := range []<-chan struct{}{first, same} {
		select {
		case <-waited:
		default:
			t.Error("not woken")
		}
	}
	select {
	case <-c.Next():
		t.Error("the next change has been")
	default:
	}
}
