package follow

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/graph"
)

// hourly is how often each kind is listed although its watch goes on. The graph follows from
// watches: should they ever lose an event, nothing else would tell. The list repairs that. Where it
// differs from the graph although the watch had come past that version, that is a bug, here or in
// the API server: it is counted and named.
const hourly = time.Hour

// mostFaultsLogged is how many objects of a piece of a list are logged.
const mostFaultsLogged = 10

// What the graph may have wrong about an object.
const (
	faultMissing  = "missing"  // it is not in the graph
	faultOutdated = "outdated" // the graph has it differently
)

// fault is an object that the graph had wrong.
type fault struct {
	what   string
	object *graph.Object
}

// faultOf returns what the graph has wrong about an object of a list, if the watch had come past
// its version; none if it is right.
func faultOf(g *graph.Graph, o *graph.Object, upTo uint64) []fault {
	if v := graph.VersionNumber(o.ResourceVersion); v == 0 || v > upTo {
		return nil
	}
	switch g.Compare(o) {
	case graph.Missing:
		return []fault{{faultMissing, o}}
	case graph.Different:
		return []fault{{faultOutdated, o}}
	}
	return nil
}

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
		f.compare()
	}
}

// compare has the kind listed, and the list compared with the graph. A kind that is behind is
// listed anyway, and is left alone.
func (f *follower) compare() {
	f.mu.Lock()
	w := f.current
	if w == nil || f.ended || f.have < f.due {
		f.mu.Unlock()
		return
	}
	f.due, f.check, f.current = f.have+1, true, nil
	f.mu.Unlock()
	w.Stop()
}

// Faults returns how many objects the graph had wrong.
func (w *Watcher) Faults() int { return int(w.faults.Load()) }

// wrong counts and logs what the graph had wrong. It makes the counters first: an increase is seen
// only of a series that exists.
func (f *Feed) wrong(w *Watcher, found []fault) {
	kind := w.metrics.labels.Of(f.Kind)
	for _, what := range []string{faultMissing, faultOutdated} {
		w.metrics.faults.WithLabelValues(kind.Group, kind.Resource, what)
	}
	for i, one := range found {
		w.faults.Add(1)
		w.metrics.faults.WithLabelValues(kind.Group, kind.Resource, one.what).Inc()
		if i < mostFaultsLogged {
			w.log.Error(nil, "the graph was wrong about an object, which is a bug: it is repaired", "kind", f.Kind.String(),
				"namespace", one.object.Namespace, "name", one.object.Name, "uid", one.object.UID, "what", one.what)
		}
	}
}
