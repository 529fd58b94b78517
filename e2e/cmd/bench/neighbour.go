package main

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/load"
)

const neighbourName = "another client beside cascades"

// idleTime is for how long the other client is measured alone.
const idleTime = 10 * time.Second

// measureNeighbour has another client ask beside nothing, beside plain requests and beside the
// systems.
func (b *bench) measureNeighbour(ctx context.Context, r *report) error {
	n, err := load.NewNeighbour(ctx, b.plane)
	if err != nil {
		return err
	}
	policy := metav1.DeletePropagationBackground
	for round := range b.inTime(b.rounds) {
		stop := n.Ask(ctx)
		began, err := time.Now(), load.Pause(ctx, idleTime)
		answers, askErr := stop()
		if err := errors.Join(err, askErr); err != nil {
			return err
		}
		idle := answers.Within(began, time.Now())
		b.noteWaits(r, "nothing", 0, idle, idle)
		p, err := b.populate(ctx, load.Flat(b.n))
		if err != nil {
			return err
		}
		err = b.beside(ctx, r, n, "plain requests", idle, func() (load.Result, error) {
			return load.Measure(ctx, b.plane.Config, p, policy, func(ctx context.Context) error {
				return load.Floor(ctx, b.cfg, p, policy)
			})
		})
		if err != nil {
			return err
		}
		for _, s := range inRound(b.systems, round, false) {
			if p, err = load.Populate(ctx, b.plane.Config, load.Flat(b.n)); err != nil {
				return err
			}
			err := b.while(ctx, s, func(*load.Running, time.Duration) error {
				return b.beside(ctx, r, n, s.Name, idle, func() (load.Result, error) {
					return load.Cascade(ctx, b.plane.Config, b.plane.Metrics, p, policy)
				})
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// beside measures what another client waits for while something is done, from its first request to
// its end.
func (b *bench) beside(ctx context.Context, r *report, n *load.Neighbour, what string, idle load.Answers,
	do func() (load.Result, error)) error {
	stop := n.Ask(ctx)
	result, err := do()
	answers, askErr := stop()
	if err := errors.Join(err, askErr); err != nil {
		return err
	}
	b.noteWaits(r, what, result.Rate(), answers.Within(result.Began, result.Began.Add(result.Took)), idle)
	return nil
}

func (b *bench) noteWaits(r *report, what string, rate float64, a, idle load.Answers) {
	get, patch := milliseconds(a.Get(99)), milliseconds(a.Patch(99))
	r.note("beside "+what, figure{"objects/s", rate},
		figure{"GET p50, ms", milliseconds(a.Get(50))}, figure{"p99", get},
		figure{"of idle", get / milliseconds(idle.Get(99))},
		figure{"PATCH p50, ms", milliseconds(a.Patch(50))}, figure{"p99", patch},
		figure{"of idle", patch / milliseconds(idle.Patch(99))})
}
