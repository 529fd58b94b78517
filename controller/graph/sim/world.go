package sim

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/graph/script"
)

// temper is how unkind a world is: each seed has its own, because faults hide each other. In thousandths
// of the steps, but for the last two: in hundredths of the requests.
type temper struct{ users, breaks, restarts, failovers, ticks, refusals, losses int }

func newTemper(d dice) temper {
	return temper{
		users: pick(d, []int{50, 130, 300}), breaks: pick(d, []int{0, 3, 10}), restarts: pick(d, []int{0, 0, 1, 4}),
		failovers: pick(d, []int{0, 0, 1, 4}), ticks: pick(d, []int{5, 30}), refusals: pick(d, []int{0, 5, 20}),
		losses: pick(d, []int{0, 5, 20}),
	}
}

// dice is where every choice comes from.
type dice interface{ IntN(n int) int }

func pick[T any](d dice, from []T) T { return from[d.IntN(len(from))] }

func sortedKeys[V any](m map[types.UID]V) []types.UID { return slices.Sorted(maps.Keys(m)) }

// world is the whole of a simulation.
type world struct {
	*rand.Rand
	server           *server
	leader, follower *collector
	tasks            []*task
	now              int // ticks
	chaos            bool
	temper           temper
	labels           int
	processes        int
	stats            Stats
	old              []*collector // processes that ended: their requests may still be under way
}

// Run plays one seed: so many steps of chaos, and then as many as it takes to settle. An error names what
// did not hold, and tells it as a script.
func Run(seed uint64, steps int) (Stats, error) {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), chaos: true, stats: Stats{}}
	w.temper = newTemper(w)
	w.server = &server{buried: map[types.UID]*object{}, longUID: seed%2 == 0}
	for _, r := range script.Usual() {
		if r.Resource == "replicasets" {
			continue
		}
		k := &kind{Resource: r, served: true, objects: map[types.UID]*object{}, graceful: r.Resource == "pods"}
		if r.Resource == "deployments" { // a kind like others, but for us
			k.forbidden = true
		}
		w.server.kinds = append(w.server.kinds, k)
	}
	w.leader, w.follower = w.process(), w.process()
	w.leader.lead()
	err := w.run(steps)
	w.stats["objects created"], w.stats["objects gone"] = w.server.uids, len(w.server.buried)
	for _, c := range append(w.old, w.leader, w.follower) {
		w.stats["events"] += c.events
	}
	return w.stats, err
}

func (w *world) chance(percent int) bool { return w.IntN(100) < percent }

func (w *world) perm(n int) []int { return w.Perm(n) }

func (w *world) process() *collector {
	w.processes++
	return newCollector(fmt.Sprintf("process %d", w.processes), w.server)
}

// refuses is an admission webhook's mood.
func (w *world) refuses() bool {
	if w.chaos && w.chance(w.temper.refusals) {
		w.stats["refused"]++
		return true
	}
	return false
}

// loses is the network's.
func (w *world) loses() bool {
	if w.chaos && w.chance(w.temper.losses) {
		w.stats["answers lost"]++
		return true
	}
	return false
}

func (w *world) run(steps int) error {
	for range steps {
		w.stats["steps"]++
		if err := w.step(); err != nil {
			return err
		}
	}
	w.chaos = false
	return w.settle()
}

// step lets one thing happen, in chaos or without.
func (w *world) step() error {
	if w.chaos {
		n, t := w.IntN(1000), w.temper
		switch {
		case n < t.users:
			w.act()
			return nil
		case n < t.users+t.breaks:
			return w.breakWatch()
		case n < t.users+t.breaks+t.restarts:
			return w.restart()
		case n < t.users+t.breaks+t.restarts+t.failovers:
			return w.failover()
		case n < t.users+t.breaks+t.restarts+t.failovers+t.ticks:
			return w.tick()
		}
	}
	switch n := w.IntN(100); {
	case n < 50:
		return w.deliver()
	case n < 53:
		return w.discover()
	case n < 57:
		w.finish(w.server.all())
		return nil
	case n < 72:
		return w.begin()
	case n < 86:
		return w.progress(func(t *task) bool { return !t.executed }, w.execute)
	default:
		return w.progress(func(t *task) bool { return t.executed }, func(t *task) error {
			w.tasks = slices.DeleteFunc(w.tasks, func(o *task) bool { return o == t })
			return w.respond(t)
		})
	}
}

// deliver brings one event of one watch to one collector.
func (w *world) deliver() error {
	c := w.leader
	if w.chance(25) {
		c = w.follower
	}
	var pending []*watch
	for _, wt := range c.watches {
		if wt.pending() {
			pending = append(pending, wt)
		}
	}
	if len(pending) == 0 {
		return nil
	}
	ev := pick(w, pending).deliver(w)
	if ev == nil {
		return nil
	}
	return c.apply(ev, "", "")
}

func (w *world) discover() error {
	c := pick(w, []*collector{w.leader, w.follower})
	if c.stale(w.server) || c.served == nil {
		return c.discover(w.server)
	}
	if w.chance(50) {
		return c.leave()
	}
	return nil
}

func (w *world) breakWatch() error {
	c := pick(w, []*collector{w.leader, w.follower})
	if ev := pick(w, c.watches).fail(); ev != nil {
		w.stats["broken watches"]++
		return c.apply(ev, "", "")
	}
	return nil
}

// restart is a crash: a new process knows nothing, and the requests of the old one go on.
func (w *world) restart() error {
	w.stats["restarts"]++
	w.retire(w.leader)
	w.leader = w.process()
	w.leader.lead()
	return nil
}

// failover makes the follower the leader.
func (w *world) failover() error {
	w.stats["failovers"]++
	w.retire(w.leader)
	w.leader, w.follower = w.follower, w.process()
	w.leader.lead()
	return nil
}

func (w *world) retire(c *collector) {
	w.old = append(w.old, c)
	for _, t := range w.tasks {
		if t.from == c && !t.executed {
			w.stats["requests outlived their process"]++
		}
	}
}

func (w *world) tick() error {
	w.now++
	return w.leader.tick()
}

// begin lets a worker take an object.
func (w *world) begin() error {
	ready := w.leader.ready(w.now)
	if len(ready) == 0 {
		return nil
	}
	uid := pick(w, ready)
	w.labels++
	label := fmt.Sprintf("r%d", w.labels)
	a := w.leader.begin(uid, label)
	if !a.Request() {
		w.leader.finish(uid, w.now, false)
		return nil
	}
	w.tasks = append(w.tasks, &task{
		from: w.leader, uid: uid, label: label, action: a, orphaning: maps.Clone(w.leader.orphaning),
	})
	return nil
}

// progress moves one of the tasks that are ready for it.
func (w *world) progress(which func(*task) bool, move func(*task) error) error {
	var some []*task
	for _, t := range w.tasks {
		if which(t) {
			some = append(some, t)
		}
	}
	if len(some) == 0 {
		return nil
	}
	t := pick(w, some)
	if err := move(t); err != nil {
		return w.tell(t.from, err, t.uid)
	}
	return nil
}

// Bounds of settling: rounds of the clock, steps within one, and what a request may cost.
const (
	mostRounds  = 1000
	mostSteps   = 20000
	quietRounds = 130 // twice the longest pause of the graph
)

// settle delivers everything and lets time pass, until nothing more is written for long enough.
func (w *world) settle() error {
	quiet := 0
	requests := w.stats["requests"]
	for round := 0; quiet < quietRounds; round++ {
		if round == mostRounds {
			return w.tell(w.leader, fmt.Errorf("not quiet after %d rounds", round), w.busy()...)
		}
		version := w.server.version
		for steps := 0; w.moving(); steps++ {
			w.stats["steps to settle"]++
			if steps == mostSteps {
				return w.tell(w.leader, fmt.Errorf("still moving after %d steps", steps), w.busy()...)
			}
			if err := w.step(); err != nil {
				return err
			}
		}
		if quiet++; w.server.version != version || w.leader.waiting() {
			quiet = 0
		}
		if err := w.tick(); err != nil {
			return err
		}
	}
	for _, check := range []func() error{w.agrees, w.settled, w.idle} {
		if err := check(); err != nil {
			return w.tell(w.leader, err, w.busy()...)
		}
	}
	// Each object may ask for a few things: references go, unblock, delete, finalizer; some earn a conflict.
	if most := 20 * (len(w.server.buried) + mostObjects); w.stats["requests"]-requests > most {
		return w.tell(w.leader, fmt.Errorf("%d requests to settle, %d are enough", w.stats["requests"]-requests, most))
	}
	return nil
}

// moving tells whether anything can happen before the next round.
func (w *world) moving() bool {
	for _, c := range []*collector{w.leader, w.follower} {
		if c.stale(w.server) || c.served == nil {
			return true
		}
		for _, wt := range c.watches {
			gone := !wt.kind.served && wt.running
			if wt.pending() && !gone || gone {
				return true
			}
		}
	}
	if len(w.tasks) > 0 || len(w.leader.ready(w.now)) > 0 {
		return true
	}
	return slices.ContainsFunc(w.server.all(), func(o *object) bool { return o.lingers || o.Deleting && o.has(slow) })
}

// busy are the objects that a message about no particular one is about.
func (w *world) busy() (uids []types.UID) {
	for _, o := range w.server.all() {
		if len(o.Owners) > 0 || o.Deleting {
			uids = append(uids, o.UID)
		}
	}
	return uids
}

// tell turns what did not hold into a message with the server's view and the script of the collector.
func (w *world) tell(c *collector, err error, uids ...types.UID) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s, after %d steps)\n\non the server:\n", err, c.name, w.stats["steps"]+w.stats["steps to settle"])
	for _, o := range w.server.all() {
		fmt.Fprintf(&b, "  %s\n", script.Line(graph.Observed{Object: &o.Object}, "", ""))
	}
	fmt.Fprintf(&b, "\nwhat the collector saw of it:\n\n")
	for _, l := range c.script(uids...) {
		fmt.Fprintf(&b, "%s\n----\n\n", l)
	}
	for _, uid := range uids {
		fmt.Fprintf(&b, "decide %s\n----\n%s\n\n", uid, cmp.Or(script.Decision(c.graph.Decide(uid)), "nothing"))
	}
	return fmt.Errorf("%s", b.String())
}
