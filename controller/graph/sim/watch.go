package sim

import (
	"slices"

	"github.com/weir-dev/weir/controller/graph"
)

// watch is one kind as one collector follows it: a list, event by event, then the kind's log from where
// the list was taken.
type watch struct {
	kind    *kind
	running bool
	list    []graph.Event // still to be delivered
	next    int           // in the log
	broken  bool          // to be listed anew
}

// start begins to follow a kind from nothing.
func (w *watch) start() { *w = watch{kind: w.kind, running: true, broken: true, next: w.next} }

// relist takes a list: as the kind is now or, from a server that lags, was at some time since the watch
// saw it last.
func (w *watch) relist(d dice) {
	at := w.next + d.IntN(len(w.kind.log)-w.next+1)
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

// deliver returns the next event, or nil if the watch was busy with itself.
func (w *watch) deliver(d dice) graph.Event {
	switch {
	case w.broken && (w.kind.forbidden || !w.kind.served):
		w.broken = !w.kind.forbidden
		if w.kind.forbidden {
			w.next = len(w.kind.log)
		}
		return graph.ListFailed{Kind: w.kind.GroupResource(), Forbidden: w.kind.forbidden, Reason: "cannot list"}
	case w.broken:
		w.relist(d)
		return nil
	case len(w.list) > 0:
		ev := w.list[0]
		w.list = w.list[1:]
		return ev
	case w.kind.forbidden:
		w.next = len(w.kind.log)
		return nil
	}
	c := w.kind.log[w.next]
	w.next++
	if c.gone {
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
	return graph.ListFailed{Kind: w.kind.GroupResource(), Reason: "broken"}
}
