package cmd

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-dev/weir/policies/apitest"
	"github.com/weir-dev/weir/policies/live"
)

// The graph of a large cluster takes memory and watches: a webhook whose policies ask for nothing in it follows none, and one that has begun
// goes on, since a policy may come back.
func TestTheGraphIsFollowedFromTheFirstPolicyThatAsksForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New()
		state, err := live.New(live.Options{Config: api.Config(), Self: []string{"weir"}, Log: logr.Discard()})
		if err != nil {
			t.Fatal(err)
		}
		policy := func(name, rest string) {
			api.Put("deletionpolicies", fmt.Sprintf("{apiVersion: weir.dev/v1alpha1, kind: DeletionPolicy, metadata: {name: %s}, spec: {match: {resources: [{apiGroups: [''], resources: [configmaps]}]}, %s}}", name, rest))
			<-time.After(time.Minute)
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		begun := 0
		go func() { ended <- state.Run(ctx) }()
		go func() {
			ended <- whenNeeded(ctx, state, func() bool { return state.Set().NeedsGraph() }, func(ctx context.Context) error {
				begun++
				<-ctx.Done()
				return nil
			})
		}()
		for _, step := range []struct {
			name, rest string
			begun      int
		}{
			{"a", "propagation: {default: Orphan}", 0},
			{"b", "protection: {confirmation: Required}", 1}, // what goes along is found in the graph
			{"c", "protection: {maxDependents: 3}", 1},
			{"b", "propagation: {default: Foreground}", 1},
		} {
			if policy(step.name, step.rest); begun != step.begun {
				t.Errorf("with %s: %s the graph was begun %d times, want %d", step.name, step.rest, begun, step.begun)
			}
		}
		cancel()
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
	})
}

func TestNothingIsFollowedWhereNothingAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := whenNeeded(ctx, &live.State{}, func() bool { return false }, func(context.Context) error { return errors.New("it was followed") })
		if err != nil {
			t.Error(err)
		}
	})
}

// TestACheckThatHasHeldHoldsForGood: a webhook that is ready stays in its Service while its graph fills for a new policy. Were all replicas not
// ready, no policy would be asked.
func TestACheckThatHasHeldHoldsForGood(t *testing.T) {
	answers := []error{errors.New("not yet"), nil, errors.New("not any more")}
	asked := 0
	check := once(func() error {
		asked++
		return answers[asked-1]
	})
	for i, want := range []string{"not yet", "", "", ""} {
		if got := check(); (got == nil) != (want == "") || got != nil && got.Error() != want {
			t.Errorf("answer %d is %v, want %q", i, got, want)
		}
	}
	if asked != 2 {
		t.Errorf("it was asked %d times, want 2: the first that held is the last", asked)
	}
}
