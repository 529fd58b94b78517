package sim

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// watch is one kind as one collector follows it: a list, event by event, then the kind's log from
// where the list was taken.
type watch struct {
	kind    *kind
	running bool
	list    []graph.Event // still to be delivered
	next    int           // in the log
	broken  bool          // to be listed again
	synced  bool          // was listed since it began
	lost    map[types.UID]bool
}

// start begins to follow a kind from nothing.
func (w *watch) start() {
	*w = watch{kind: w.kind, running: true, broken: true, next: w.next, lost: w.lost}
}

// level tells whether everything that was listed or happened until now has come, or will.
func (w *watch) level() bool {
	return w.running && w.synced && !w.broken && len(w.list) == 0
}

// relist takes a list: as the kind is now or, from a server that lags, was at some time since the
// watch saw it last.
func (w *watch) relist(d dice) {
	from := max(w.next, w.kind.restored)
	at := from + d.IntN(len(w.kind.log)-from+1)
	if d.IntN(3) > 0 {
		at = len(w.kind.log)
	}
	var shown []*object
	for _, c := range w.kind.log[:at] {
		shown = slices.DeleteFunc(shown, func(o *object) bool { return o.UID == c.object.UID })
		if !c.gone {
			shown = append(shown, c.object)
		}
	}
	gr := w.kind.GroupResource()
	w.list = []graph.Event{graph.ListBegins{Kind: gr}}
	for _, o := range shown {
		w.list = append(w.list, graph.Observed{Object: &o.clone().Object})
	}
	w.list = append(w.list, graph.ListEnds{Kind: gr})
	w.next, w.broken = at, false
}

// pending tells whether there is something to deliver.
func (w *watch) pending() bool {
	return w.running && (w.broken || len(w.list) > 0 || w.next < len(w.kind.log))
}

// deliver returns the next event, or nil if the watch was busy with itself. lose: a deletion is not
// told.
func (w *watch) deliver(d dice, lose bool) graph.Event {
	switch {
	case w.broken && (w.kind.forbidden || !w.kind.served):
		w.broken = !w.kind.forbidden
		if w.kind.forbidden {
			w.next = len(w.kind.log)
		}
		return graph.ListFailed{Kind: w.kind.GroupResource(), Forbidden: w.kind.forbidden, Reason: "cannot list"}
	case w.broken && !w.synced && d.IntN(100) < 20:
		return graph.ListSlow{Kind: w.kind.GroupResource(), Reason: "slow"}
	case w.broken:
		w.relist(d)
		return nil
	case len(w.list) > 0:
		ev := w.list[0]
		w.list = w.list[1:]
		w.synced = w.synced || len(w.list) == 0
		return ev
	case w.kind.forbidden:
		w.next = len(w.kind.log)
		return nil
	}
	c := w.kind.log[w.next]
	w.next++
	if c.gone {
		if lose {
			w.lost[c.object.UID] = true
			return nil
		}
		return graph.Gone{Kind: w.kind.GroupResource(), UID: c.object.UID}
	}
	return graph.Observed{Object: &c.object.clone().Object}
}

// fail breaks the watch, perhaps in the middle of a list: what happens until the next list is only
// seen in that.
func (w *watch) fail() graph.Event {
	if !w.running || w.broken {
		return nil
	}
	w.broken, w.list = true, nil
	if w.synced {
		return graph.FellBehind{Kind: w.kind.GroupResource(), Reason: "broken"}
	}
	return graph.ListFailed{Kind: w.kind.GroupResource(), Reason: "broken"}
}

// rewind ends a watch whose server was restored: it begins again after discovery.
func (w *watch) rewind() { *w = watch{kind: w.kind, next: len(w.kind.log), lost: w.lost} }
