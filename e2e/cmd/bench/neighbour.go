package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/weir-dev/weir/e2e/load"
)

// A neighbour is a controller that has nothing to do with collecting: it reads one object of a
// namespace of its own, and writes to it.
type neighbour struct {
	in typedcorev1.ConfigMapInterface
}

const (
	neighbourObject = "neighbour"
	// askPause is what it rests between an answer and its next request: one that asks all the time
	// would be load by itself.
	askPause = 5 * time.Millisecond
	// idleTime is for how long the other client is measured alone.
	idleTime = 10 * time.Second
)

// newNeighbour gives a neighbour an identity as controllers have it, a ServiceAccount, and its
// object.
func (b *bench) newNeighbour(ctx context.Context) (n neighbour, err error) {
	who, err := as(load.User(ctx, b.Plane, "system:serviceaccount:neighbour:neighbour",
		"system:serviceaccounts", "system:serviceaccounts:neighbour"))
	if err != nil {
		return n, err
	}
	namespace, err := load.NewNamespace(ctx, who.dynamic)
	if err != nil {
		return n, err
	}
	n.in = who.kube.CoreV1().ConfigMaps(namespace.Name)
	_, err = n.in.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: neighbourObject}}, metav1.CreateOptions{})
	return n, err
}

// latency is how long an answer took that was asked for at a time.
type latency struct {
	at   time.Time
	took time.Duration
}

// within are the latencies of what was asked for in a time, in milliseconds.
func within(all []latency, from, to time.Time) (in []float64) {
	for _, l := range all {
		if !l.at.Before(from) && l.at.Before(to) {
			in = append(in, milliseconds(l.took))
		}
	}
	return in
}

// waits are how long the neighbour waits, by kind of request, while something is done, from its
// start to its end.
type waits struct{ get, patch []float64 }

// while has the neighbour read and write, each one request after the other, while something is done.
func (n neighbour) while(ctx context.Context, do func() (began, ended time.Time, err error)) (waits, error) {
	stopGets := timed(ctx, func(ctx context.Context) error {
		_, err := n.in.Get(ctx, neighbourObject, metav1.GetOptions{})
		return err
	})
	stopPatches := timed(ctx, func(ctx context.Context) error {
		patch := fmt.Appendf(nil, `{"data":{"now":%q}}`, time.Now().Format(time.RFC3339Nano))
		_, err := n.in.Patch(ctx, neighbourObject, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
	began, ended, err := do()
	gets, getErr := stopGets()
	patches, patchErr := stopPatches()
	return waits{within(gets, began, ended), within(patches, began, ended)}, errors.Join(err, getErr, patchErr)
}

// idle is while nothing is done.
func (n neighbour) idle(ctx context.Context) (waits, error) {
	return n.while(ctx, func() (began, ended time.Time, err error) {
		began = time.Now()
		err = pause(ctx, idleTime)
		return began, time.Now(), err
	})
}

// timed asks again and again, until stop is called or an answer is an error.
func timed(ctx context.Context, ask func(context.Context) error) (stop func() ([]latency, error)) {
	ctx, cancel := context.WithCancel(ctx)
	var all []latency
	var failed error
	var wg sync.WaitGroup
	wg.Go(func() {
		for failed == nil {
			began := time.Now()
			err := ask(ctx)
			if ctx.Err() != nil { // it was cut short
				return
			}
			failed = err
			all = append(all, latency{began, time.Since(began)})
			if pause(ctx, askPause) != nil {
				return
			}
		}
	})
	return func() ([]latency, error) { cancel(); wg.Wait(); return all, failed }
}

// measureNeighbour has another client ask beside nothing, beside plain requests and beside the
// systems.
func (b *bench) measureNeighbour(ctx context.Context) error {
	n, err := b.newNeighbour(ctx)
	if err != nil {
		return err
	}
	for round := range b.inTime(b.rounds) {
		idle, err := n.idle(ctx)
		if err != nil {
			return err
		}
		b.noteWaits("nothing", 0, idle, idle)
		beside := func(what string, do func() (load.Result, error)) error {
			var result load.Result
			w, err := n.while(ctx, func() (began, ended time.Time, err error) {
				result, err = do()
				return result.Began, result.Began.Add(result.Took), err
			})
			if err == nil {
				b.noteWaits(what, result.Rate(), w, idle)
			}
			return err
		}
		p, err := b.populate(ctx, load.Flat(b.n))
		if err != nil {
			return err
		}
		err = beside("plain requests", func() (load.Result, error) { return b.measuredFloor(ctx, b.self, p, background) })
		for _, s := range inRound(b.systems, round, false) {
			if err != nil {
				return err
			}
			if p, err = load.Populate(ctx, b.Config, load.Flat(b.n)); err != nil {
				return err
			}
			err = b.while(ctx, s, func(*running, time.Duration) error {
				return beside(s.name, func() (load.Result, error) {
					m, err := b.cascade(ctx, b.admin, p, background)
					return m.Result, err
				})
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) noteWaits(what string, rate float64, w, idle waits) {
	get, patch := percentile(w.get, 99), percentile(w.patch, 99)
	b.note("beside "+what, figure{"objects/s", rate},
		figure{"GET p50, ms", percentile(w.get, 50)}, figure{"p99", get}, figure{"of idle", get / percentile(idle.get, 99)},
		figure{"PATCH p50, ms", percentile(w.patch, 50)}, figure{"p99", patch},
		figure{"of idle", patch / percentile(idle.patch, 99)})
}
