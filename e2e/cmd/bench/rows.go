package main

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"
)

// row is one thing to measure, by the name by which --only selects it.
type row struct {
	name    string
	measure func(context.Context, *report) error
}

// rows are all that can be measured with these options, in the order in which they are: what fills
// the cluster comes late, and what changes it for good is the last.
func (b *bench) rows() (rows []row) {
	add := func(when bool, name string, measure func(context.Context, *report) error) {
		if when {
			rows = append(rows, row{name, measure})
		}
	}
	weir := b.weir != ""
	add(b.memory > 0, memoryName, b.measureEmpty)
	for _, w := range works {
		add(true, w.name, func(ctx context.Context, r *report) error { return b.runWork(ctx, w, r) })
	}
	add(b.coOwners > 0, coOwnersName, b.measureCoOwners)
	for _, d := range b.drainings() {
		add(true, d.name, func(ctx context.Context, r *report) error { return b.compareDraining(ctx, d, r) })
	}
	add(true, neighbourName, b.measureNeighbour)
	for _, a := range admittings {
		add(weir, a.name, func(ctx context.Context, r *report) error { return b.compareAdmitting(ctx, a, r) })
	}
	for _, e := range enforcings {
		add(weir, e.name, func(ctx context.Context, r *report) error { return b.compareEnforcing(ctx, e, r) })
	}
	add(weir, braked, b.measureBrake)
	add(true, followingName, b.measureFollowing)
	add(weir, shadowName, b.measureShadow)
	add(weir && b.objects > 0, scaleName, b.measureScale)
	add(b.memory > 0, leftName, b.measureLeft)
	add(b.memory > 0, memoryName, b.measureFull)
	add(b.memory > 0 && b.plugin != "", askingName, b.measureAsking)
	add(weir && b.coOwners > 0, backFillName, b.measureBackFill)
	add(weir, undoAlone, b.measureUndoAlone)
	add(weir, undoTree, b.measureUndoTree)
	add(weir && b.namespaceN > 0, undoNamespace, b.measureUndoNamespace)
	return rows
}

// run measures what was asked for.
func (b *bench) run(ctx context.Context, r *report) error {
	return b.runRows(ctx, r, slices.DeleteFunc(b.rows(), func(x row) bool { return !b.only.MatchString(x.name) }))
}

// runRows gives each row its part of the time, and what rows before it have left.
func (b *bench) runRows(ctx context.Context, r *report, rows []row) error {
	for i, x := range rows {
		b.row, b.due = x.name, b.limit*time.Duration(i+1)/time.Duration(len(rows))
		if b.limit > 0 && time.Since(b.started) >= b.limit {
			b.noTime(0)
			continue
		}
		if err := x.measure(ctx, r); err != nil {
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
			if b.limit > 0 && round+1 < rounds && time.Since(b.started)+time.Since(began) > b.due {
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
