package ask

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/weir-dev/weir/ask/snapshot"
)

const (
	// patience is how long a user waits before the spinner appears.
	patience = time.Second
	// turning is how often the spinner turns.
	turning = 200 * time.Millisecond
)

// spin shows on the user's terminal what a Reader lists, until stop is called.
func spin(ctx context.Context, r *snapshot.Reader) (stop func()) {
	if !term.IsTerminal(int(os.Stderr.Fd())) || os.Getenv("TERM") == "dumb" {
		return func() {}
	}
	return spinOn(ctx, os.Stderr, r)
}

func spinOn(ctx context.Context, out io.Writer, r *snapshot.Reader) (stop func()) {
	var begun atomic.Int64
	var last atomic.Value
	r.Listing = func(kind string) {
		last.Store(kind)
		begun.Add(1)
	}
	ctx, cancel := context.WithCancel(ctx)
	var spinning sync.WaitGroup
	spinning.Go(func() {
		tick := time.NewTicker(turning)
		defer tick.Stop()
		clear := ""
		for turn := time.Duration(1); ; turn++ {
			select {
			case <-ctx.Done():
				_, _ = io.WriteString(out, clear)
				return
			case <-tick.C:
				if n := begun.Load(); n > 0 && turn*turning > patience {
					clear = "\r\x1b[K"
					_, _ = fmt.Fprintf(out, "%s%c listing %s (kind %d)", clear, `|/-\`[turn%4], last.Load(), n)
				}
			}
		}
	})
	return func() {
		cancel()
		spinning.Wait()
	}
}
