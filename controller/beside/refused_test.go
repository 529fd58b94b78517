package beside

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// refuse has requests of a verb fail, as long as err returns something.
func (k *cage) refuse(verb string, err func() error) {
	k.client.PrependReactor(verb, "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		if err := err(); err != nil {
			return true, nil, err
		}
		return false, nil, nil
	})
}

// TestWhatIsInTheWayOfACanaryIsRemoved: only by its uid, and what cannot be removed is told and tried
// again.
func TestWhatIsInTheWayOfACanaryIsRemoved(t *testing.T) {
	notFound := apierrors.NewNotFound(configMaps.GroupResource(), v1beta1.CollectorCanary)
	conflict := apierrors.NewConflict(configMaps.GroupResource(), v1beta1.CollectorCanary, errors.New("the uid in the precondition is another"))
	for name, c := range map[string]struct {
		refuse map[string]error // by verb, once
		writes []string
		told   string
		takes  time.Duration
	}{
		"changed":                 {writes: []string{"delete", "create"}},
		"it goes meanwhile":       {refuse: map[string]error{"delete": notFound}, writes: []string{"delete", "create"}},
		"another takes its place": {refuse: map[string]error{"delete": conflict}, writes: []string{"delete", "delete", "create"}, told: "delete the canary, which was changed: ", takes: failureRetry},
		"it cannot be read":       {refuse: map[string]error{"get": apierrors.NewInternalError(errors.New("etcd"))}, writes: []string{"delete", "create"}, told: "read the canary: ", takes: failureRetry},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newCage(t, -1)
				k.Reporter = teller(func(text string) { k.told = append(k.told, text) })
				old := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.CollectorCanary, Namespace: "home", UID: "old"}}
				if err := k.client.Tracker().Add(old); err != nil {
					t.Fatal(err)
				}
				gone := func() { _ = k.client.Tracker().Delete(configMaps, "home", v1beta1.CollectorCanary) } // it may be
				for _, verb := range []string{"get", "delete"} {
					k.refuse(verb, func() error {
						err := c.refuse[verb]
						delete(c.refuse, verb)
						if verb != "get" && apierrors.IsNotFound(err) {
							gone()
						}
						return err
					})
				}
				began := time.Now()
				if err := k.Await(t.Context()); err != nil || time.Since(began) != c.takes+DefaultStands {
					t.Errorf("%v, after %s, want %s", err, time.Since(began), c.takes+DefaultStands)
				}
				var writes []string
				for _, a := range k.client.Actions() {
					if a, deletes := a.(clienttesting.DeleteActionImpl); deletes {
						if p := a.DeleteOptions.Preconditions; p == nil || p.UID == nil || *p.UID != "old" {
							t.Errorf("deleted with %+v, want the uid of what was read", a.DeleteOptions)
						}
					}
					if a.GetVerb() != "get" {
						writes = append(writes, a.GetVerb())
					}
				}
				if diff := cmp.Diff(c.writes, writes); diff != "" {
					t.Errorf("writes (-want +got):\n%s", diff)
				}
				if told := strings.Join(k.told, "\n"); !strings.Contains(told, c.told) || len(k.told) > 1 || (c.told == "") != (told == "") {
					t.Errorf("told %q, want %q", told, c.told)
				}
			})
		})
	}
}

// teller is a Reporter of texts.
type teller func(text string)

func (f teller) Warn(_ graph.Ref, _, text string) { f(text) }
func (f teller) Tell(_ graph.Ref, _, text string) { f(text) }

// TestWatchGoesOnWhileNothingIsKnown: that the API server does not answer is no other collector,
// and one that begins after that is found.
func TestWatchGoesOnWhileNothingIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCage(t, -1)
		lines := k.logged()
		var broken error
		var mu = &k.mu
		for _, verb := range []string{"get", "create"} {
			k.refuse(verb, func() error { mu.Lock(); defer mu.Unlock(); return broken })
		}
		done := make(chan error, 1)
		go func() { done <- k.Watch(t.Context()) }()
		time.Sleep(time.Minute)
		k.set(func() { broken = apierrors.NewServiceUnavailable("etcd") })
		before := len(k.client.Actions())
		time.Sleep(time.Hour)
		if n := len(lines()); n < 700 || n > 722 || !strings.Contains(lines()[0], "will try again") {
			t.Errorf("%d lines in an hour, want one each %s", n, failureRetry)
		}
		if n := len(k.client.Actions()) - before; n > 722 {
			t.Errorf("%d requests in an hour", n)
		}
		k.set(func() { broken, k.deletes = nil, time.Second })
		k.remove(t)
		time.Sleep(calmLook + DefaultStands + failureRetry)
		synctest.Wait()
		select {
		case err := <-done:
			if !errors.Is(err, ErrOther) {
				t.Error(err)
			}
		default:
			t.Error("it works beside another")
		}
	})
}

// TestWhatIsNotKnownOfTheBuiltInCollectorIsNotShown: a value from before would say that it works.
func TestWhatIsNotKnownOfTheBuiltInCollectorIsNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCage(t, time.Millisecond)
		var broken bool
		k.refuse("get", func() error {
			k.mu.Lock()
			defer k.mu.Unlock()
			if broken {
				return apierrors.NewServiceUnavailable("etcd")
			}
			return nil
		})
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { k.Measure(ctx); close(ended) }()
		for _, step := range []struct {
			broken bool
			want   float64
		}{{false, 1}, {true, -1}, {false, 1}} {
			k.set(func() { broken = step.broken })
			time.Sleep(2 * k.every())
			synctest.Wait()
			if alive, lag := k.gauge(t, "weir_builtin_collector_alive"), k.gauge(t, "weir_builtin_collector_lag_seconds"); alive != step.want || (lag < 0) != step.broken {
				t.Errorf("broken %t: alive %v, lag %v", step.broken, alive, lag)
			}
		}
		end()
		<-ended
	})
}
