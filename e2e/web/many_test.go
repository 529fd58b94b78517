//go:build web && full

package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/e2e/load"
)

// longTasks keeps how many milliseconds each task took that held up the browser, and of what frames
// that took long were busy with.
const longTasks = `
	window.long = []; window.busy = [];
	const tasks = new PerformanceObserver((l) => keep(l.getEntries())), frames = new PerformanceObserver((l) => keepFrames(l.getEntries()));
	const keep = (all) => long.push(...all.map((e) => Math.round(e.duration)));
	const keepFrames = (all) => busy.push(...all.map((e) => Math.round(e.duration) + " ms, of which " + Math.round(e.startTime + e.duration - (e.styleAndLayoutStart || e.startTime + e.duration)) +
		" style and layout" + (e.scripts || []).map((s) => "; " + Math.round(s.duration) + " " + s.invoker + " " + s.sourceURL.split("/").pop() + " " + s.sourceFunctionName).join("")));
	tasks.observe({type: "longtask", buffered: true});
	frames.observe({type: "long-animation-frame", buffered: true});
	window.heldUp = () => {
		keep(tasks.takeRecords()); keepFrames(frames.takeRecords());
		return {long: long.splice(0), busy: busy.splice(0)};
	};`

// heldUp is what has held up the browser since it was asked last.
type heldUp struct {
	Long []int    // tasks of more than 50 ms
	Busy []string // frames of more than 50 ms, in which the browser was busy with what a test asks, too
}

func (h *heldUp) add(more heldUp) {
	h.Long, h.Busy = append(h.Long, more.Long...), append(h.Busy, more.Busy...)
}

// TestManyDependents: an object with so many dependents that they can be neither drawn nor kept in
// a page. The first paint does not wait for them, and nothing holds up the browser.
func TestManyDependents(t *testing.T) {
	population, err := load.Populate(t.Context(), shared.plane.Config, load.Flat(*objects))
	if err != nil {
		t.Fatal(err)
	}
	w := &fixture{t, population.Namespace}
	p := open(t, serve(t, shared.plane.Kubeconfig).url+w.place("owner", ""), longTasks)
	summary := fmt.Sprintf("Plan: %d objects are deleted", *objects+1)
	p.see(summary)
	paint := eval[float64](p, `performance.getEntriesByName("first-contentful-paint")[0].startTime`)

	p.until("document.querySelectorAll('.row').length === 2") // they are one line
	held := eval[heldUp](p, "heldUp()")
	p.picture("many")
	p.accessible()
	eval[heldUp](p, "heldUp()") // looking for faults holds it up, not the page

	moved := p.took(func() {
		w.make("newcomer", owners{{Object: map[string]any{"metadata": map[string]any{"name": population.Owner.Name, "uid": string(population.Owner.UID)}}}})
	}, fmt.Sprintf("Plan: %d objects are deleted", *objects+2))
	held.add(eval[heldUp](p, "heldUp()"))
	t.Logf("%d dependents: first paint %.0f ms (goal 500), tasks longer than 50 ms: %v (goal: none); a change among them is on the screen after %v",
		*objects, paint, held.Long, moved.Round(time.Millisecond))
	t.Logf("frames longer than 50 ms:\n%s", strings.Join(held.Busy, "\n"))
	if paint > 1500 || moved > patience {
		t.Error("that is past what a busy machine explains")
	}
	for _, ms := range held.Long {
		if ms > 200 {
			t.Errorf("a task of %d ms held up the browser", ms)
		}
	}
}
