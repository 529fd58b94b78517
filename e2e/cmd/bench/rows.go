package main

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"
)

// Targets of the Makefile.
const (
	collecting = "collecting"
	webhooks   = "webhook"
	undoing    = "undo"
	processes  = "process"
	scaled     = "scale"
)

// row is one thing to measure, by the name by which --only selects it.
type row struct {
	target, name string
	measure      func(context.Context) error
}

// rows are those that are asked for, in the order in which they are measured: what fills the
// cluster comes late, and what changes it for good is the last.
func (b *bench) rows() (rows []row) {
	for _, w := range works {
		rows = append(rows, row{collecting, w.name, func(ctx context.Context) error { return b.compareWork(ctx, w) }})
	}
	rows = append(rows, row{collecting, "start, co-owners", b.measureCoOwners},
		row{collecting, "empty namespace", b.compareEmpty})
	for _, d := range b.drainings() {
		rows = append(rows, row{collecting, d.name, func(ctx context.Context) error { return b.compareDraining(ctx, d) }})
	}
	rows = append(rows, row{collecting, "another client beside cascades", b.measureNeighbour})
	for _, j := range judgings {
		rows = append(rows, row{webhooks, j.name, func(ctx context.Context) error { return b.compareJudging(ctx, j) }})
	}
	for _, p := range []string{"Foreground", "Orphan"} {
		rows = append(rows, row{webhooks, "enforced " + p + ", no dependents",
			func(ctx context.Context) error { return b.compareEnforcing(ctx, p) }})
	}
	rows = append(rows,
		row{processes, "CPU of following", b.measureFollowing},
		row{scaled, "at scale", b.measureScale},
		row{processes, "memory, made and deleted again", b.measureLeft},
		row{processes, "memory", b.measureMemory},
		row{processes, "asking", b.measureAsking},
		row{webhooks, "back-fill", b.measureBackFill},
		row{undoing, "undo, objects that are deleted one by one", b.measureUndoAlone},
		row{undoing, "undo, a tree", b.measureUndoTree},
		row{undoing, "undo, a namespace", b.measureUndoNamespace})
	return slices.DeleteFunc(rows, func(x row) bool {
		all := b.target == "" && x.target != scaled
		return !all && x.target != b.target || !b.only.MatchString(x.name)
	})
}

// run gives each row its part of the time, and what rows before it have left.
func (b *bench) run(ctx context.Context, rows []row) error {
	for i, x := range rows {
		b.row, b.due = x.name, b.limit*time.Duration(i+1)/time.Duration(len(rows))
		if time.Since(b.started) >= b.limit {
			b.noTime(0)
			continue
		}
		if err := x.measure(ctx); err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
	}
	return nil
}

// inTime counts rounds from 0: the first, and others while there is time for one more that takes as
// long as the last did.
func (b *bench) inTime(rounds int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for round := range rounds {
			began := time.Now()
			if !yield(round) {
				return
			}
			if round+1 < rounds && time.Since(b.started)+time.Since(began) > b.due {
				b.noTime(round + 1)
				return
			}
		}
	}
}

// noTime notes that there is no time for more rounds of the row.
func (b *bench) noTime(rounds int) {
	b.short = append(b.short, fmt.Sprintf("%d of %s", rounds, b.row))
	b.say("%s: %d rounds, since all has to end within %s", b.row, rounds, b.limit)
}

// inRound are the systems that are measured in a round, which counts from 0. A slow work takes the
// reference two or three times as long as Weir, so the reference does it in the first round only;
// an older Weir does it in all. In every second round the last is the first: who comes first finds
// the control plane in another state than who comes after it.
func inRound(systems []system, round int, slow bool) []system {
	if slow && round > 0 && systems[len(systems)-1].name != weirBefore {
		return systems[:1]
	}
	systems = slices.Clone(systems)
	if round%2 == 1 {
		slices.Reverse(systems)
	}
	return systems
}
