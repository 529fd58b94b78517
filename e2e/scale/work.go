package scale

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/load"
)

// Touch changes n objects of namespaces, all in turn, so many a second at the most, and counts
// them. After a time it ends, with fewer. It returns how many it has changed, and how long that
// took.
func Touch(ctx context.Context, cfg *rest.Config, namespaces []*Namespace, n, perSecond int, atMost time.Duration, changed *atomic.Int64) (int, time.Duration, error) {
	c, err := newClient(cfg)
	if err != nil {
		return 0, 0, fmt.Errorf("change objects: %w", err)
	}
	before, began := changed.Load(), time.Now()
	err = load.Each(ctx, n, func(ctx context.Context, k int) error {
		if err := load.Pause(ctx, time.Until(began.Add(time.Duration(k)*time.Second/time.Duration(perSecond)))); err != nil {
			return err
		}
		if time.Since(began) > atMost {
			return nil
		}
		ns := namespaces[k%len(namespaces)]
		i := k / len(namespaces) % len(ns.Objects)
		err := c.touch(ctx, KindOf(i), ns.Name, ns.Objects[i].Name, strconv.Itoa(k))
		if err == nil {
			changed.Add(1)
		}
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("change objects: %w", err)
	}
	return int(changed.Load() - before), time.Since(began), nil
}

// Cascade deletes the roots of namespaces, and measures what a running system makes of that.
func Cascade(ctx context.Context, cfg *rest.Config, namespaces []*Namespace, ended func(time.Time)) (load.Result, error) {
	result, err := goes(ctx, cfg, namespaces, ended, 1)
	if err != nil {
		return result, fmt.Errorf("cascade: %w", err)
	}
	return result, nil
}

// Floor deletes all that is in namespaces by plain requests, dependents before their owners, and
// measures it in the same way.
func Floor(ctx context.Context, cfg *rest.Config, namespaces []*Namespace, ended func(time.Time)) (load.Result, error) {
	most := 0
	for _, ns := range namespaces {
		most = max(most, len(ns.Objects))
	}
	result, err := goes(ctx, cfg, namespaces, ended, most)
	if err != nil {
		return result, fmt.Errorf("floor: %w", err)
	}
	return result, nil
}

// goes deletes the first so many objects in each of the namespaces, the last of them first, and
// waits until all are gone.
func goes(ctx context.Context, cfg *rest.Config, namespaces []*Namespace, ended func(time.Time), first int) (load.Result, error) {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return load.Result{}, err
	}
	objects := map[load.Kind][]load.Object{}
	for _, ns := range namespaces {
		for i, o := range ns.Objects {
			objects[KindOf(i)] = append(objects[KindOf(i)], o)
		}
	}
	return load.Gone(ctx, cfg, objects, ended, func(ctx context.Context) error {
		return load.Each(ctx, first*len(namespaces), func(ctx context.Context, k int) error {
			ns, i := namespaces[k%len(namespaces)], first-1-k/len(namespaces)
			if i >= len(ns.Objects) {
				return nil
			}
			return load.Remove(ctx, client.Resource(KindOf(i).GVR()).Namespace(ns.Name), ns.Objects[i])
		})
	})
}

// Ask has objects in the middle of trees deleted for a trial, n times one after the other, and
// returns how long each answer took.
func Ask(ctx context.Context, cfg *rest.Config, namespaces []*Namespace, n int) ([]time.Duration, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.WarningHandler = rest.NoWarnings{} // the webhook says of each what would go
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("delete for a trial: %w", err)
	}
	var took []time.Duration
	for k := range n {
		ns := namespaces[k%len(namespaces)]
		i := 1 + k/len(namespaces)%ns.Tree.Middles
		began := time.Now()
		err := client.Resource(KindOf(i).GVR()).Namespace(ns.Name).Delete(ctx, ns.Objects[i].Name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return nil, fmt.Errorf("delete %s for a trial: %w", ns.Objects[i].Name, err)
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}

// ListAll lists the metadata of all kinds, each in pages, side by side: what a start costs at the
// least. It returns how many objects it read.
func ListAll(ctx context.Context, cfg *rest.Config) (int, error) {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return 0, fmt.Errorf("list all kinds: %w", err)
	}
	var read atomic.Int64
	err = load.Each(ctx, len(templates), func(ctx context.Context, k int) error {
		for options := (metav1.ListOptions{Limit: listPage}); ; {
			list, err := client.Resource(KindOf(k).GVR()).List(ctx, options)
			if err != nil {
				return err
			}
			read.Add(int64(len(list.Items)))
			if options.Continue = list.Continue; options.Continue == "" {
				return nil
			}
		}
	})
	if err != nil {
		return 0, fmt.Errorf("list all kinds: %w", err)
	}
	return int(read.Load()), nil
}

// listPage is large: to read from etcd in small pages would take longer than what it is compared
// with.
const listPage = 10000
