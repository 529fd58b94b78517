package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/weir-dev/weir/e2e/plane"
)

// A Neighbour is a controller that has nothing to do with collecting: it reads one object of a
// namespace of its own, and writes to it.
type Neighbour struct {
	in typedcorev1.ConfigMapInterface
}

const (
	neighbourObject = "neighbour"
	// askPause is what it rests between an answer and its next request: one that asks all the time
	// would be load by itself.
	askPause = 5 * time.Millisecond
)

// NewNeighbour gives a neighbour an identity as controllers have it, a ServiceAccount, and its
// object.
func NewNeighbour(ctx context.Context, p *plane.Plane) (*Neighbour, error) {
	const user = "system:serviceaccount:neighbour:neighbour"
	cfg, _, err := p.UserConfig(user, "system:serviceaccounts", "system:serviceaccounts:neighbour")
	if err == nil {
		err = grant(ctx, p, user)
	}
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a neighbour: %w", err)
	}
	namespace, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-neighbour-"}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("make a neighbour: %w", err)
	}
	n := &Neighbour{client.CoreV1().ConfigMaps(namespace.Name)}
	if _, err := n.in.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: neighbourObject}}, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("make a neighbour: %w", err)
	}
	return n, nil
}

// Answers are how long requests took.
type Answers struct{ get, patch, deletes []latency }

// latency is how long an answer took that was asked for at a time.
type latency struct {
	at   time.Time
	took time.Duration
}

// Get is the highest of the lowest p hundredths of the GETs.
func (a Answers) Get(p int) time.Duration { return percentile(a.get, p) }

// Patch is Get of the PATCHes.
func (a Answers) Patch(p int) time.Duration { return percentile(a.patch, p) }

// Delete is Get of the DELETEs.
func (a Answers) Delete(p int) time.Duration { return percentile(a.deletes, p) }

// percentile is by nearest rank (p is above 0 and at most 100); 0 if there are none.
func percentile(all []latency, p int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	all = slices.SortedFunc(slices.Values(all), func(a, b latency) int { return int(a.took - b.took) })
	return all[(len(all)*p+99)/100-1].took
}

// Within are the answers of what was asked for from a time to another.
func (a Answers) Within(from, to time.Time) Answers {
	outside := func(l latency) bool { return l.at.Before(from) || !l.at.Before(to) }
	return Answers{get: slices.DeleteFunc(slices.Clone(a.get), outside),
		patch: slices.DeleteFunc(slices.Clone(a.patch), outside)}
}

// Ask has the neighbour read and write, each one request after the other, until stop is called.
func (n *Neighbour) Ask(ctx context.Context) (stop func() (Answers, error)) {
	gets := timed(ctx, func(ctx context.Context) error {
		_, err := n.in.Get(ctx, neighbourObject, metav1.GetOptions{})
		return err
	})
	patches := timed(ctx, func(ctx context.Context) error {
		patch := fmt.Appendf(nil, `{"data":{"now":%q}}`, time.Now().Format(time.RFC3339Nano))
		_, err := n.in.Patch(ctx, neighbourObject, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
	return func() (Answers, error) {
		get, getErr := gets()
		patch, patchErr := patches()
		if err := errors.Join(getErr, patchErr); err != nil {
			return Answers{}, fmt.Errorf("ask as a neighbour: %w", err)
		}
		return Answers{get: get, patch: patch}, nil
	}
}

// timed asks again and again, until stop is called or an answer is an error.
func timed(ctx context.Context, ask func(context.Context) error) (stop func() ([]latency, error)) {
	ctx, cancel := context.WithCancel(ctx)
	var all []latency
	var failed error
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			err := ask(ctx)
			if ctx.Err() != nil { // it was cut short
				return
			}
			if err != nil {
				failed = err
				return
			}
			all = append(all, latency{began, time.Since(began)})
			if Pause(ctx, askPause) != nil {
				return
			}
		}
	})
	return func() ([]latency, error) { cancel(); wg.Wait(); return all, failed }
}
