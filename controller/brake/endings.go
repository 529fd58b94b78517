package brake

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies/v1beta1"
)

const (
	// seeEvery is how soon the delete of an owner is recorded. recordEvery is the least time between
	// two writes of the record; for a larger record it is the time that recordRate bytes each take.
	seeEvery, recordEvery, recordRate = 100 * time.Millisecond, time.Second, 64 << 10
	// smallest: nothing is recorded while fewer dependents are left than this fraction of the limits,
	// because so few are not held.
	smallest = 10

	ownersKey = "owners"
	aboutKey  = "about"
	about     = "Owners that Weir saw deleted, and how many references to them were left: KIND UID " +
		"REFERENCES. A Weir that starts deletes what they left, if a live read does not find them, where it would " +
		"hold it otherwise. Deleting or changing this ConfigMap deletes nothing."
)

// endings records which owners were seen to be deleted while dependents are left. A process that is
// killed within a cascade saw that a client asked for it; the next one did not. That one finds by
// reads that the owners are gone, and would hold the rest.
type endings struct {
	*Brake
	recalled bool
	history  int            // the history of what is recorded
	recorded map[owner]int  // references to each owner, as the API server has it
	empty    time.Time      // since when there is nothing to record; zero: there is something
	failing  rate.Sometimes // logs a failure
}

type owner struct {
	kind schema.GroupResource
	uid  types.UID
}

// records reports whether anything is recorded.
func (b *Brake) records() bool { return b.Record != nil && !b.Limits.Off() }

// Recall reads what the process before recorded, after every kind has been listed. If that fails,
// Remember retries it.
func (b *Brake) Recall(ctx context.Context) {
	b.endings = &endings{Brake: b, failing: rate.Sometimes{Interval: failureEvery}}
	if b.records() {
		b.endings.recall(ctx)
	}
}

// Remember keeps the record until ctx ends, after Recall.
func (b *Brake) Remember(ctx context.Context) {
	if !b.records() {
		return
	}
	for {
		if err := await.Pause(ctx, b.endings.look(ctx)); err != nil {
			return
		}
	}
}

// recall reads the record, once.
func (e *endings) recall(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	o, err := e.Record.Get(ctx, v1beta1.DeletedOwners, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		e.failure(ctx, "which owners were seen to be deleted before cannot be read: what they left may be held", err)
		return
	}
	e.mu.Lock()
	e.history = e.Brake.history
	e.mu.Unlock()
	e.recalled, e.recorded = true, map[owner]int{}
	if err != nil { // there is no record
		return
	}
	all := parseOwners(o.Data[ownersKey])
	for _, of := range all {
		e.recorded[owner{of.Kind, of.UID}] = of.References
		e.Store.Apply(of)
	}
	if len(all) > 0 {
		e.Log.Info("continues with what was asked for before Weir was restarted", "owners", len(all))
	}
}

// parseOwners parses a record, and skips lines that are cut off.
func parseOwners(text string) (all []graph.Remembered) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) != 3 || len(all) == graph.MostRemembered {
			continue
		}
		if n, err := strconv.Atoi(words[2]); err == nil {
			all = append(all, graph.Remembered{Kind: schema.ParseGroupResource(words[0]),
				UID: types.UID(words[1]), References: n})
		}
	}
	return all
}

// look records which owners have been deleted since, and returns when to look again.
func (e *endings) look(ctx context.Context) time.Duration {
	if e.recalled {
		return e.record(ctx)
	}
	e.recall(ctx)
	return recordEvery
}

func (e *endings) record(ctx context.Context) time.Duration {
	e.mu.Lock()
	history := e.Brake.history
	e.mu.Unlock()
	began := time.Now()
	var ended []graph.EndedOwner
	e.Store.Read(func(g *graph.Graph) {
		ended = g.EndedOwners(min(e.Limits.Most, e.Limits.Objects)/smallest, mostWeighed)
	})
	if len(ended) > graph.MostRemembered { // dependents of the others may be held
		slices.SortStableFunc(ended, func(a, b graph.EndedOwner) int { return cmp.Compare(b.References, a.References) })
		ended = ended[:graph.MostRemembered]
	}
	again := max(seeEvery, countShare*time.Since(began))
	if history == e.history && !e.outdated(ended) {
		return again
	}
	text := ""
	recorded := map[owner]int{}
	for _, o := range ended {
		recorded[owner{o.Kind, o.UID}] = o.References
		text += fmt.Sprintf("%s %s %d\n", o.Kind, o.UID, o.References)
	}
	if err := e.write(ctx, text); err != nil {
		e.failure(ctx, "which owners were seen to be deleted cannot be recorded: if Weir is killed now, "+
			"what they left may be held", err)
		return max(again, recordEvery)
	}
	e.history, e.recorded = history, recorded
	return max(again, recordEvery, recordEvery*time.Duration(len(text))/recordRate)
}

// outdated reports whether the record has to be written, because it lacks an owner, or more
// references are left than it says. Surplus entries do no harm. They are removed when there has
// been nothing to record for a while.
func (e *endings) outdated(ended []graph.EndedOwner) bool {
	if len(ended) > 0 {
		e.empty = time.Time{}
		return slices.ContainsFunc(ended, func(o graph.EndedOwner) bool {
			return e.recorded[owner{o.Kind, o.UID}] < o.References
		})
	}
	if e.empty.IsZero() {
		e.empty = time.Now()
	}
	return len(e.recorded) > 0 && time.Since(e.empty) >= calm
}

// write replaces the record, whoever wrote it. A process that no longer leads may write once more,
// which the next write of this one replaces.
func (e *endings) write(ctx context.Context, text string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	data := map[string]string{ownersKey: text, aboutKey: about}
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return fmt.Errorf("encode the record of deleted owners: %w", err)
	}
	_, err = e.Record.Patch(ctx, v1beta1.DeletedOwners, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) && text == "" {
		return nil
	}
	if apierrors.IsNotFound(err) {
		labels := map[string]string{"app.kubernetes.io/name": "weir", "app.kubernetes.io/managed-by": "weir"}
		made := metav1.ObjectMeta{Name: v1beta1.DeletedOwners, Labels: labels}
		_, err = e.Record.Create(ctx, &corev1.ConfigMap{ObjectMeta: made, Data: data}, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write ConfigMap %s: %w", v1beta1.DeletedOwners, err)
	}
	return nil
}

func (e *endings) failure(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		e.failing.Do(func() { e.Log.Error(err, what) })
	}
}
