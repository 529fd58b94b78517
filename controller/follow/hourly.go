package follow

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weir-dev/weir/controller/await"
)

// hourly is how often each kind is listed although its watch goes on. The graph follows from
// watches: should they ever lose an event, nothing else would tell. The list repairs that.
const hourly = time.Hour

// listHourly has one kind after another listed until ctx ends, evenly over the hour.
func (w *Watcher) listHourly(ctx context.Context) {
	for last := ""; ; {
		pause, all := discoveryPeriod, w.followers()
		if len(all) > 0 {
			pause = hourly / time.Duration(len(all))
		}
		if await.Pause(ctx, pause) != nil {
			return
		}
		if len(all) == 0 {
			continue
		}
		slices.SortFunc(all, func(a, b *follower) int { return cmp.Compare(a.Kind.String(), b.Kind.String()) })
		i := slices.IndexFunc(all, func(f *follower) bool { return f.Kind.String() > last })
		f := all[max(i, 0)]
		last = f.Kind.String()
		f.again("")
	}
}
