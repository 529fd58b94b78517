package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
)

const (
	neighbourName = "another client beside cascades"
	// apartName is about an API server that takes few requests at a time, so that it is its
	// priority levels that say who waits.
	apartName = "another client, priority levels apart"
)

// What another client is beside, but for the systems.
const (
	besideNothing = "nothing"
	besidePlain   = "plain requests"
	besideLevel   = "weir, with the chart's priority level"
)

// fewInFlight is what the API server of apartName takes at a time, of reads and of writes: less
// than Weir sends (64), where the defaults of 400 and 200 are never reached on a machine that the
// server has to itself.
const fewInFlight = 20

// beside is what another client had to wait for its answers, and the rate of what went on
// meanwhile.
type beside struct {
	what       string
	rate       float64 // objects a second
	get, patch waits
}

// waits are how long answers took, in milliseconds.
type waits struct{ p50, p99 float64 }

func waitsOf(took []time.Duration) waits {
	ms := func(p int) float64 { return load.Percentile(took, p).Seconds() * 1000 }
	return waits{ms(50), ms(99)}
}

// measureNeighbour has nothing, plain requests and the systems take turns.
func (b *bench) measureNeighbour(ctx context.Context, r *report) error {
	n, err := load.NewNeighbour(ctx, b.plane)
	if err != nil {
		return err
	}
	for round := range b.inTime(b.rounds) {
		turns := []func() (beside, error){
			func() (beside, error) { return besideIdle(ctx, n) },
			func() (beside, error) { return b.besideFloor(ctx, n) },
		}
		for _, s := range b.systems {
			turns = append(turns, func() (beside, error) { return b.besideCascade(ctx, n, s) })
		}
		if err := b.takeTurns(r, neighbourName, round, turns); err != nil {
			return err
		}
	}
	return nil
}

// measureApart does so on a plane of its own, whose API server is full, with the chart's priority
// level for Weir and without.
func (b *bench) measureApart(ctx context.Context, r *report) (err error) {
	full := *b
	if full.plane, err = plane.Start(ctx, plane.Options{Out: os.Stderr, APIServerFlags: []string{
		fmt.Sprintf("--max-requests-inflight=%d", fewInFlight), fmt.Sprintf("--max-mutating-requests-inflight=%d", fewInFlight),
	}}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, full.plane.Stop()) }()
	if full.cfg, full.kubeconfig, err = load.ServiceAccount(ctx, full.plane); err != nil {
		return err
	}
	n, err := load.NewNeighbour(ctx, full.plane)
	if err != nil {
		return err
	}
	weir := load.Weir(full.plane, b.weir, full.kubeconfig, b.weirFlags...)
	for round := range b.inTime(b.rounds) {
		err := b.takeTurns(r, apartName, round, []func() (beside, error){
			func() (beside, error) { return besideIdle(ctx, n) },
			func() (beside, error) { return full.besideCascade(ctx, n, weir) },
			func() (x beside, err error) {
				remove, err := load.Levels(ctx, full.plane.Config, full.cfg, b.chart)
				if err != nil {
					return x, err
				}
				x, err = full.besideCascade(ctx, n, weir)
				x.what = besideLevel
				return x, errors.Join(err, remove(ctx))
			},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) takeTurns(r *report, name string, round int, turns []func() (beside, error)) error {
	for _, turn := range turns {
		x, err := turn()
		if err != nil {
			return err
		}
		r.beside[name] = append(r.beside[name], x)
		b.say("%s, round %d: beside %s, %.0f/s: GET p50 %.1f ms, p99 %.1f ms; PATCH p50 %.1f ms, p99 %.1f ms", name, round+1, x.what, x.rate, x.get.p50, x.get.p99, x.patch.p50, x.patch.p99)
	}
	return nil
}

func besideIdle(ctx context.Context, n *load.Neighbour) (beside, error) {
	began := time.Now()
	stop := n.Ask(ctx)
	err := load.Pause(ctx, idleTime)
	answers, askErr := stop()
	return besideOf(besideNothing, 0, answers, began, time.Now()), errors.Join(err, askErr)
}

func (b *bench) besideFloor(ctx context.Context, n *load.Neighbour) (beside, error) {
	p, err := load.Populate(ctx, b.plane.Config, load.Flat(b.n))
	if err == nil {
		err = load.Pause(ctx, digest)
	}
	if err != nil {
		return beside{}, err
	}
	policy := metav1.DeletePropagationBackground
	stop := n.Ask(ctx)
	result, err := load.Measure(ctx, b.plane.Config, p, policy, func(ctx context.Context) error { return load.Floor(ctx, b.cfg, p, policy) })
	answers, askErr := stop()
	return besideOf(besidePlain, result.Rate(), answers, result.Began, result.Began.Add(result.Took)), errors.Join(err, askErr)
}

func (b *bench) besideCascade(ctx context.Context, n *load.Neighbour, s load.System) (x beside, err error) {
	p, err := load.Populate(ctx, b.plane.Config, load.Flat(b.n))
	if err != nil {
		return x, err
	}
	running, _, err := load.StartAwake(ctx, b.plane.Config, s)
	if err != nil {
		return x, err
	}
	defer func() {
		if stopErr := running.Stop(); stopErr != nil {
			b.say("%v", stopErr)
		}
	}()
	if err := load.Pause(ctx, digest); err != nil {
		return x, err
	}
	stop := n.Ask(ctx)
	result, err := load.Cascade(ctx, b.plane.Config, b.plane.Metrics, p, metav1.DeletePropagationBackground)
	answers, askErr := stop()
	return besideOf(s.Name, result.Rate(), answers, result.Began, result.Began.Add(result.Took)), errors.Join(err, askErr)
}

// besideOf leaves out what was asked for before the work began, or after it.
func besideOf(what string, rate float64, all load.Answers, from, to time.Time) beside {
	return beside{what, rate, waitsOf(load.Within(all.Get, from, to)), waitsOf(load.Within(all.Patch, from, to))}
}

func (r *report) writeBeside(s *strings.Builder) {
	for _, name := range []string{neighbourName, apartName} {
		all := r.beside[name]
		if len(all) == 0 {
			continue
		}
		of := func(what string, value func(beside) float64) []float64 {
			var v []float64
			for _, x := range all {
				if x.what == what {
					v = append(v, value(x))
				}
			}
			return v
		}
		fmt.Fprintf(s, "\n| %s; %d objects | objects/s | its GETs, p50 | p99 | of idle | its PATCHes, p50 | p99 | of idle |\n|---|---|---|---|---|---|---|---|\n", name, r.bench.n)
		var written []string
		for _, x := range all {
			if slices.Contains(written, x.what) {
				continue
			}
			written = append(written, x.what)
			m := func(value func(beside) float64) float64 { return median(of(x.what, value)) }
			idle := func(value func(beside) float64) float64 { return m(value) / median(of(besideNothing, value)) }
			fmt.Fprintf(s, "| %s | %.0f | %.1f ms | %.1f ms | %.1f | %.1f ms | %.1f ms | %.1f |\n", x.what, m(rate), m(getP50), m(getP99), idle(getP99), m(patchP50), m(patchP99), idle(patchP99))
		}
		for _, pair := range [][2]string{{"weir", "reference"}, {besideLevel, "weir"}} {
			ratio := func(value func(beside) float64) string {
				a, b := of(pair[0], value), of(pair[1], value)
				for i := range a {
					a[i] /= b[i]
				}
				return byRound(a)
			}
			if slices.Contains(written, pair[0]) && slices.Contains(written, pair[1]) {
				fmt.Fprintf(s, "\nBeside %s, of beside %s, by round: rate %s, p99 of GETs %s, p99 of PATCHes %s.\n", pair[0], pair[1], ratio(rate), ratio(getP99), ratio(patchP99))
			}
		}
	}
}

func rate(x beside) float64     { return x.rate }
func getP50(x beside) float64   { return x.get.p50 }
func getP99(x beside) float64   { return x.get.p99 }
func patchP50(x beside) float64 { return x.patch.p50 }
func patchP99(x beside) float64 { return x.patch.p99 }
