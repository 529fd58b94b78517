package namespaces

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
)

// asked is a list that is asked for: when, of which namespace, and after what time it is not wanted
// any more.
type asked struct {
	at        time.Duration
	namespace string
	until     time.Duration // 0: it is waited for
}

// TestListsAreSharedByThoseWhoAskedBeforeTheyBegan: each list takes 50 ms, and shows each
// namespace's objects as of its beginning: one named after that moment.
func TestListsAreSharedByThoseWhoAskedBeforeTheyBegan(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		others int
		fails  string // lists of this fail; "*" is all namespaces
		wishes []asked
		lists  []string // when, and of what
		got    []string // by wish
	}{
		"one alone does not wait":      {0, "", []asked{{0, "a", 0}}, []string{"0s a"}, []string{"a/0s"}},
		"one beside others waits":      {1, "", []asked{{0, "a", 0}}, []string{"10ms a"}, []string{"a/10ms"}},
		"beside many it waits longer":  {3, "", []asked{{0, "a", 0}, {29 * ms, "b", 0}}, []string{"30ms *"}, []string{"a/30ms", "b/30ms"}},
		"but not for long":             {1000, "", []asked{{0, "a", 0}}, []string{"500ms a"}, []string{"a/500ms"}},
		"several share one":            {1, "", []asked{{0, "a", 0}, {3 * ms, "b", 0}, {9 * ms, "c", 0}}, []string{"10ms *"}, []string{"a/10ms", "b/10ms", "c/10ms"}},
		"it began before it was asked": {1, "", []asked{{0, "a", 0}, {20 * ms, "b", 0}}, []string{"10ms a", "30ms b"}, []string{"a/10ms", "b/30ms"}},
		"twice by one":                 {1, "", []asked{{0, "a", 0}, {3 * ms, "a", 0}}, []string{"10ms a"}, []string{"a/10ms", "a/10ms"}},
		"all namespaces may not be":    {1, "*", []asked{{0, "a", 0}, {3 * ms, "b", 0}}, []string{"10ms *", "60ms a", "60ms b"}, []string{"a/60ms", "b/60ms"}},
		"it fails for one alone":       {0, "a", []asked{{0, "a", 0}}, []string{"0s a"}, []string{"refused"}},
		"who makes it is told to end":  {1, "", []asked{{0, "a", 20 * ms}, {3 * ms, "b", 0}}, []string{"10ms *", "20ms b"}, []string{"context canceled", "b/20ms"}},
		"who shares it is told to end": {1, "", []asked{{0, "a", 0}, {3 * ms, "b", 20 * ms}}, []string{"10ms *"}, []string{"a/10ms", "context canceled"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var mu sync.Mutex
				var lists []string
				shared := &sharedLists{lock: &sync.Mutex{}, next: map[schema.GroupResource]*sharedList{}, others: func() int { return c.others }}
				shared.list = func(ctx context.Context, _ schema.GroupResource, namespace string, each func(*metav1.PartialObjectMetadata)) error {
					at, of := time.Since(began), namespace
					if of == "" {
						of = "*"
					}
					mu.Lock()
					lists = append(lists, fmt.Sprint(at, " ", of))
					mu.Unlock()
					select {
					case <-time.After(50 * ms):
					case <-ctx.Done():
						return ctx.Err()
					}
					for _, ns := range []string{"a", "b", "c", "other"} {
						if namespace == "" || namespace == ns {
							each(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprint(at)}})
						}
					}
					if of == c.fails { // in its middle
						return errors.New("refused")
					}
					return nil
				}
				got := make([]string, len(c.wishes))
				var wg sync.WaitGroup
				for i, w := range c.wishes {
					wg.Go(func() {
						<-time.After(w.at)
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						if w.until > 0 {
							defer time.AfterFunc(w.until-w.at, cancel).Stop()
						}
						items, err := shared.of(ctx, schema.GroupResource{Resource: "pods"}, w.namespace, func(m *metav1.PartialObjectMetadata) found {
							if m.Namespace != w.namespace {
								t.Errorf("of %s something is kept for %s", m.Namespace, w.namespace)
							}
							return found{ref: graph.Ref{Namespace: m.Namespace, Name: m.Name}}
						})
						if err != nil {
							got[i] = err.Error()
							return
						}
						for _, f := range items {
							got[i] += f.ref.Namespace + "/" + f.ref.Name
						}
					})
				}
				wg.Wait()
				slices.Sort(lists)
				if diff := cmp.Diff(c.lists, lists); diff != "" {
					t.Errorf("lists (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(c.got, got); diff != "" {
					t.Errorf("answers (-want +got):\n%s", diff)
				}
				if len(shared.next) > 0 {
					t.Errorf("%d lists are remembered", len(shared.next))
				}
			})
		})
	}
}
