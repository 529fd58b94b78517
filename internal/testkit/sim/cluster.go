package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/script"
)

// temper is how unkind a cluster is: each seed has its own, because faults hide each other. In
// thousandths of the steps, but for the last three: in hundredths of the deletions that a watch
// tells of, and of the requests.
type temper struct {
	users, breaks, restarts, failovers, restores, ticks, revisions int
	ghosts, refusals, losses                                       int
}

func newTemper(d dice) temper {
	return temper{
		users: pick(d, []int{50, 130, 300}), breaks: pick(d, []int{0, 3, 10}), restarts: pick(d, []int{0, 0, 1, 4}),
		failovers: pick(d, []int{0, 0, 1, 4}), restores: pick(d, []int{0, 0, 0, 1, 3}), ghosts: pick(d, []int{0, 0, 1, 5}), ticks: pick(d, []int{5, 30}), revisions: pick(d, []int{0, 0, 1, 5}), refusals: pick(d, []int{0, 5, 20}),
		losses: pick(d, []int{0, 5, 20}),
	}
}

// dice is where every choice comes from.
type dice interface{ IntN(n int) int }

func pick[T any](d dice, from []T) T { return from[d.IntN(len(from))] }

func sortedKeys[V any](m map[types.UID]V) []types.UID { return slices.Sorted(maps.Keys(m)) }

// cluster is the whole of a simulation.
type cluster struct {
	*rand.Rand
	server           *server
	leader, follower *collector
	deposed          *collector // was the leader, and does not know yet that it is not; nil
	saved            *server    // a backup
	tasks            []*task
	now              int // ticks
	chaos            bool
	temper           temper
	revision         uint64 // of the policies
	labels           int
	processes        int
	stats            Stats
	old              []*collector // processes that ended: their requests may still be under way
	braking          *persons     // nil: what is inferred has no limit
}

// Run plays one seed: so many steps of chaos, and then as many as it takes to settle. An error
// names what did not hold, and tells it as a script.
func Run(seed uint64, steps int) (Stats, error) {
	w, err := played(seed, steps)
	return w.stats, err
}

// Script plays one seed and returns what the last leader saw of it, as a script.
func Script(seed uint64, steps int) ([]string, error) {
	w, err := played(seed, steps)
	return w.leader.script(w.leader.seen()...), err
}

func played(seed uint64, steps int) (*cluster, error) {
	w := newCluster(seed)
	return w, w.play(steps)
}

func newCluster(seed uint64) *cluster {
	w := &cluster{Rand: rand.New(rand.NewPCG(seed, 1)), chaos: true, stats: Stats{}}
	w.temper = newTemper(w)
	w.server = &server{buried: map[types.UID]*object{}, ending: map[string]int{}, longUID: seed%2 == 0}
	for _, r := range script.Usual() {
		if r.Resource == "replicasets" {
			continue
		}
		k := &kind{Resource: r, served: true, objects: map[types.UID]*object{}, graceful: r.Resource == "pods"}
		if r.Resource == "deployments" { // a kind like others, but for us
			k.forbidden = true
		}
		k.sick = w.chance(10)
		w.server.kinds = append(w.server.kinds, k)
	}
	return w
}

func (w *cluster) play(steps int) error {
	w.leader, w.follower = w.process(), w.process()
	w.lead()
	err := w.run(steps)
	w.stats["objects created"], w.stats["objects gone"] = w.server.uids, len(w.server.buried)
	for _, c := range append(w.old, w.leader, w.follower) {
		w.stats["events"] += c.events
	}
	return err
}

// lead has the leader begin to work.
func (w *cluster) lead() {
	w.resume(w.leader)
	w.leader.lead()
}

func (w *cluster) chance(percent int) bool { return w.IntN(100) < percent }

func (w *cluster) perm(n int) []int { return w.Perm(n) }

func (w *cluster) process() *collector {
	w.processes++
	return newCollector(fmt.Sprintf("process %d", w.processes), w.server)
}

// refuses is an admission webhook's mood.
func (w *cluster) refuses() bool {
	if w.chaos && w.chance(w.temper.refusals) {
		w.stats["refused"]++
		return true
	}
	return false
}

// loses is the network's.
func (w *cluster) loses() bool {
	if w.chaos && w.chance(w.temper.losses) {
		w.stats["answers lost"]++
		return true
	}
	return false
}

func (w *cluster) run(steps int) error {
	for range steps {
		w.stats["steps"]++
		if err := w.step(); err != nil {
			return err
		}
	}
	w.chaos = false
	w.retire(w.deposed)
	w.deposed = nil
	w.revise()
	return w.settle()
}

// step lets one thing happen, in chaos or without.
func (w *cluster) step() error {
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
		case n < t.users+t.breaks+t.restarts+t.failovers+t.ticks+t.restores:
			return w.restore()
		case n < t.users+t.breaks+t.restarts+t.failovers+t.ticks+t.restores+t.revisions:
			w.stats["policies changed"]++
			w.revise()
			return nil
		}
	}
	switch n := w.IntN(100); {
	case n < 46:
		return w.deliver()
	case n < 50:
		return w.rule()
	case n < 53:
		return w.discover()
	case n < 57:
		w.finish(w.server.all())
		return nil
	case n < 61:
		return w.drain()
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
func (w *cluster) deliver() error {
	c := w.leader
	if w.chance(25) {
		c = w.follower
	} else if w.deposed != nil && w.chance(40) {
		c = w.deposed
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
	ev := pick(w, pending).deliver(w, w.chaos && w.chance(w.temper.ghosts))
	if ev == nil {
		return nil
	}
	return c.apply(ev, "", "")
}

func (w *cluster) discover() error {
	c := pick(w, []*collector{w.leader, w.follower})
	if c.stale(w.server) || c.served == nil {
		return c.discover(w.server)
	}
	if w.chance(50) {
		return c.leave()
	}
	return nil
}

func (w *cluster) breakWatch() error {
	c := pick(w, []*collector{w.leader, w.follower})
	if ev := pick(w, c.watches).fail(); ev != nil {
		w.stats["broken watches"]++
		return c.apply(ev, "", "")
	}
	return nil
}

// restart is a crash: a new process knows nothing, and the requests of the old one go on.
func (w *cluster) restart() error {
	w.stats["restarts"]++
	w.retire(w.leader)
	w.leader = w.process()
	w.lead()
	return nil
}

// failover makes the follower the leader.
func (w *cluster) failover() error {
	w.stats["failovers"]++
	if w.retire(w.deposed); w.chance(50) {
		w.stats["two leaders at once"]++
		w.deposed = w.leader
	} else {
		w.retire(w.leader)
		w.deposed = nil
	}
	w.leader, w.follower = w.follower, w.process()
	w.lead()
	return nil
}

// restore puts the server back to a backup that was made a while ago, and makes the next one. The
// collectors know of it before anything is sent again: contact was lost, and no request is made
// after that until it is known that history did not go back.
func (w *cluster) restore() error {
	if w.saved == nil || w.chance(30) {
		w.saved = w.server.backup()
		return nil
	}
	w.stats["restores"]++
	w.server.restore(w.saved, w.chance(40))
	for _, t := range w.tasks {
		if !t.executed {
			t.executed, t.outcome, t.answer = true, refused, graph.Unanswered
		}
	}
	if w.braking != nil { // who decided did so about what was there then
		clear(w.braking.decided)
		clear(w.braking.seen)
	}
	for _, c := range append(w.working(), w.follower) {
		c.orphaning, c.served, c.passes = map[types.UID]bool{}, nil, map[string]*pass{}
		clear(c.unruled)
		if c.brake != nil {
			c.brake.Rewound(w.now)
		}
		for _, wt := range c.watches {
			wt.rewind()
		}
		if err := c.apply(graph.Rewound{Reason: "restored"}, "", ""); err != nil {
			return err
		}
	}
	return nil
}

// working are the processes that believe that they lead.
func (w *cluster) working() []*collector {
	if w.deposed == nil {
		return []*collector{w.leader}
	}
	return []*collector{w.leader, w.deposed}
}

func (w *cluster) retire(c *collector) {
	if c == nil {
		return
	}
	w.old = append(w.old, c)
	for _, t := range w.tasks {
		if t.from == c && !t.executed {
			w.stats["requests outlived their process"]++
		}
	}
}

func (w *cluster) tick() error {
	w.now++
	for _, c := range w.working() {
		if err := c.tick(); err != nil {
			return err
		}
		if c.brake != nil && (!w.chaos || w.chance(50)) {
			w.keep(c)
			w.decide(c)
		}
	}
	return nil
}

// begin lets a worker take an object.
func (w *cluster) begin() error {
	c := pick(w, w.working())
	ready := c.ready(w.now)
	if len(ready) == 0 {
		return nil
	}
	uid := pick(w, ready)
	if w.chaos && c.graph.Decide(uid).LowPriority && w.chance(80) {
		return nil // its turn has not come
	}
	w.labels++
	label := fmt.Sprintf("r%d", w.labels)
	a := c.begin(uid, label)
	if !a.Request() {
		c.finish(uid, w.now, false)
		return nil
	}
	if held, err := w.holds(c, a); held || err != nil {
		return err
	}
	w.tasks = append(w.tasks, &task{
		from: c, uid: uid, label: label, action: a, orphaning: maps.Clone(c.orphaning), unfollowed: c.unfollowed(),
		told: c.told(), history: c.graph.History(), ruled: c.ruling(uid),
	})
	return nil
}

// progress moves one of the tasks that are ready for it.
func (w *cluster) progress(which func(*task) bool, move func(*task) error) error {
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
