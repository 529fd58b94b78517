package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies/live"
)

// watchedCluster tells what is followed of it.
type watchedCluster struct{ follows string }

func (c *watchedCluster) Follow(ctx context.Context) error {
	c.follows += " objects"
	<-ctx.Done()
	return nil
}

func (c *watchedCluster) FollowKinds(ctx context.Context, all <-chan struct{}) error {
	c.follows += " kinds"
	select {
	case <-all:
		return c.Follow(ctx)
	case <-ctx.Done():
		return nil
	}
}

// The graph of a large cluster takes memory and watches: a webhook whose policies ask for nothing
// in it follows none, one whose policies ask which kinds there are follows no others, and one that
// has begun goes on, since a policy may come back.
func TestTheClusterIsFollowedAsFarAsPoliciesAskForIt(t *testing.T) {
	const orphan, counts, permits = "DeletionPolicy propagation: {default: Orphan}", "DeletionPolicy protection: {maxDependents: 3}", "OwnerReferencePolicy blockOwnerDeletion: RequirePermission"
	for name, steps := range map[string][]struct{ name, policy, follows string }{
		"objects from the beginning": {
			{"a", orphan, ""}, {"b", "DeletionPolicy protection: {confirmation: Required}", " objects"}, // what goes along is found in the graph
			{"c", permits, " objects"}, {"b", orphan, " objects"}, {"d", counts, " objects"}},
		"kinds, and then objects": {{"a", permits, " kinds"}, {"b", orphan, " kinds"}, {"c", counts, " kinds objects"}, {"c", orphan, " kinds objects"}, {"d", counts, " kinds objects"}},
		"only kinds":              {{"a", permits, " kinds"}, {"a", "OwnerReferencePolicy blockOwnerDeletion: Deny", " kinds"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := apitest.New()
				state, err := live.New(live.Options{Config: api.Config(), Self: []string{"weir"}, Log: logr.Discard()})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 2)
				var c watchedCluster
				go func() { ended <- state.Run(ctx) }()
				go func() {
					ended <- followNeeded(ctx, state, func() bool { return state.Set().NeedsGraph() }, func() bool { return state.Set().NeedsKinds() }, &c)
				}()
				for _, step := range steps {
					kind, rest, _ := strings.Cut(step.policy, " ")
					api.Put(map[string]string{"DeletionPolicy": "deletionpolicies", "OwnerReferencePolicy": "ownerreferencepolicies"}[kind],
						fmt.Sprintf("{apiVersion: weir.dev/v1beta1, kind: %s, metadata: {name: %s}, spec: {match: {resources: [{apiGroups: [''], resources: [configmaps]}]}, %s}}", kind, step.name, rest))
					<-time.After(time.Minute)
					synctest.Wait()
					if c.follows != step.follows {
						t.Errorf("with %s: %s it follows%q, want%q", step.name, step.policy, c.follows, step.follows)
					}
				}
				cancel()
				if err := errors.Join(<-ended, <-ended); err != nil {
					t.Error(err)
				}
			})
		})
	}
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

// TestACheckThatHasHeldHoldsForGood: a webhook that is ready stays in its Service while its graph
// fills for a new policy. Were all replicas not ready, no policy would be asked.
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
