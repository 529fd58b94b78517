//go:build stories

package stories

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	streams   = 4
	streamGap = 100 * time.Millisecond // between the pairs of one of them: a busy cluster, not a benchmark
)

// keeps is a policy by which deletes of parents keep their children, also where a delete asks for
// nothing: it is Weir alone that keeps them, because the API server would have them deleted.
const keeps = `  failurePolicy: %s
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    namespaceSelector: {matchLabels: {story: STORY}}
    objectSelector: {matchLabels: {role: parent}}
  propagation: {default: Orphan}
`

// stream creates parents with a child each and deletes the parents, all the time, and notes what is
// refused. The deletes ask for nothing, like those of most programs, and come again where the API
// server says so (429), as client-go does.
type stream struct {
	*story
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	deleted []string // parents
	refused []string // what went wrong
}

// keep makes the policy, and waits until all of the webhook adds the finalizer by it.
func (s *story) keep(failurePolicy string) {
	s.Helper()
	s.policy("DeletionPolicy", fmt.Sprintf(keeps, failurePolicy))
	s.awaitFinalizers()
}

// awaitFinalizers waits until all of the webhook is at work: the API server reaches it, and each
// replica knows the policy. The Service chooses one at a time.
func (s *story) awaitFinalizers() {
	s.Helper()
	s.until("new parents are stamped, twenty times in a row", func(ctx context.Context) error {
		for range 20 {
			cm, err := s.create(ctx, "", nil)
			if err != nil {
				return err
			}
			if err := s.remove(ctx, cm.Name); err != nil {
				return err
			}
			if !slices.Contains(cm.Finalizers, finalizer) {
				return fmt.Errorf("%s was not", cm.Name)
			}
		}
		return nil
	})
}

// create makes a parent, or the child of one.
func (s *story) create(ctx context.Context, name string, of *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, GenerateName: "parent-", Labels: map[string]string{"role": "parent"}}}
	if of != nil {
		cm.Labels["role"] = "child"
		cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: of.Name, UID: of.UID}}
	}
	return cluster.client.CoreV1().ConfigMaps(s.namespace).Create(ctx, cm, metav1.CreateOptions{})
}

func (s *story) remove(ctx context.Context, name string) error {
	return cluster.client.CoreV1().ConfigMaps(s.namespace).Delete(ctx, name, metav1.DeleteOptions{})
}

func (s *story) stream() *stream {
	st := &stream{story: s}
	ctx, cancel := context.WithCancel(s.Context())
	st.cancel = cancel
	for i := range streams {
		st.wg.Go(func() { st.flow(ctx, i) })
	}
	s.Cleanup(func() { cancel(); st.wg.Wait() })
	return st
}

func (st *stream) flow(ctx context.Context, id int) {
	began := time.Now().UnixMilli() // another stream may have been there before
	tick := time.NewTicker(streamGap)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// One that has begun is finished: what is cut off by the end of the story was not refused.
		st.pair(context.WithoutCancel(ctx), fmt.Sprintf("p-%d-%d-%d", began, id, i))
	}
}

func (st *stream) pair(ctx context.Context, name string) {
	parent, err := st.create(ctx, name, nil)
	if err == nil {
		_, err = st.create(ctx, name+"-child", parent)
	}
	if err == nil {
		err = st.remove(ctx, name)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if err != nil {
		st.refused = append(st.refused, fmt.Sprintf("%s %s: %v", time.Now().UTC().Format(time.TimeOnly), name, err))
		return
	}
	st.deleted = append(st.deleted, name)
}

// flowing waits until so many more were deleted.
func (st *stream) flowing(more int) {
	st.Helper()
	st.mu.Lock()
	want := len(st.deleted) + more
	st.mu.Unlock()
	st.until("the stream flows", func(context.Context) error {
		st.mu.Lock()
		defer st.mu.Unlock()
		if n := len(st.deleted); n < want {
			return fmt.Errorf("%d of %d were deleted; what was refused: %v", n, want, lastOf(st.refused))
		}
		return nil
	})
}

// ended ends the stream, of which nothing was refused.
func (st *stream) ended() {
	st.Helper()
	st.cancel()
	st.wg.Wait()
	if len(st.refused) > 0 {
		st.Errorf("%d of %d were refused, the first ones:\n%s", len(st.refused), len(st.refused)+len(st.deleted),
			strings.Join(st.refused[:min(5, len(st.refused))], "\n"))
	}
}

// unharmed ends the stream: nothing was refused, all parents go, and all of their children are
// there and belong to no owner.
func (st *stream) unharmed() {
	st.Helper()
	st.ended()
	st.kept(st.deleted)
	st.Logf("%d parents were deleted", len(st.deleted))
	// One request instead of a namespace that takes its time over what is known to be there.
	err := cluster.client.CoreV1().ConfigMaps(st.namespace).DeleteCollection(st.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "role=child"})
	if err != nil {
		st.Error(err)
	}
}

// kept waits until parents are gone, and their children are there and belong to no owner.
func (s *story) kept(parents []string) {
	s.Helper()
	s.until("the parents are gone and their children free", func(ctx context.Context) error {
		list, err := cluster.client.CoreV1().ConfigMaps(s.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		there := map[string]*corev1.ConfigMap{}
		for i := range list.Items {
			there[list.Items[i].Name] = &list.Items[i]
		}
		for _, p := range parents {
			child := there[p+"-child"]
			switch {
			case child == nil || child.DeletionTimestamp != nil:
				s.Fatalf("lost: the child of %s", p)
			case there[p] != nil:
				return fmt.Errorf("%s is still there, with %v", p, there[p].Finalizers)
			case len(child.OwnerReferences) > 0:
				return fmt.Errorf("%s still belongs to %s", child.Name, p)
			}
		}
		return nil
	})
}

func lastOf(all []string) string {
	if len(all) == 0 {
		return "nothing"
	}
	return all[len(all)-1]
}

// family makes a parent with a child.
func (s *story) family(name string) {
	s.Helper()
	parent, err := s.create(s.Context(), name, nil)
	if err == nil {
		_, err = s.create(s.Context(), name+"-child", parent)
	}
	if err != nil {
		s.Fatal(err)
	}
}
