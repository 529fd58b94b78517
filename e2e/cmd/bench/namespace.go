package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/e2e/load"
)

// A draining is one thing to measure about namespaces.
type draining struct {
	name       string
	namespaces int
	configMaps int // in each, besides its furniture
	owned      int // by the first of each owned+1 of them; 0: none is
}

const (
	// treeSize is how many ConfigMaps there are to an owner, with it.
	treeSize = 10
	// contentEach is what each of many namespaces holds, with its furniture.
	contentEach = 50
	// furniture is how many objects every namespace has: the ConfigMap and the ServiceAccount that
	// controllers put there. Nothing else runs on the bench's plane, so they are made here, and are
	// not made again.
	furniture = 2
	// drainPatience is long: the reference empties a kind by one request, of which nothing is seen
	// at the namespace.
	drainPatience = 10 * time.Minute
	// afterwards is how long a system's last requests may come in once the namespace is gone: an
	// answer, a look whether it is really gone.
	afterwards = time.Second
)

func (b *bench) drainings() []draining {
	ds := []draining{{fmt.Sprintf("namespace with %d ConfigMaps", b.namespaceN), 1, b.namespaceN, 0}}
	for _, owned := range []int{b.namespaceN/2 - 1, treeSize - 1} {
		name := fmt.Sprintf("namespace with %d ConfigMaps, each %dth owns the next %d", b.namespaceN/2, owned+1, owned)
		ds = append(ds, draining{name, 1, b.namespaceN / 2, owned})
	}
	n := max(1, b.n/contentEach)
	name := fmt.Sprintf("%d namespaces with %d objects each", n, contentEach)
	return append(ds, draining{name, n, contentEach - furniture, 0})
}

// compareDraining takes the systems in turns, as compareWork does.
func (b *bench) compareDraining(ctx context.Context, d draining) error {
	return b.betweenFloors(b.systems, true,
		func() (load.Result, error) { return b.floorOfContent(ctx, d) },
		func(s system) (measured, error) { return b.drainBy(ctx, d, s) })
}

// compareEmpty tells time and requests: there is nothing to be fast with.
func (b *bench) compareEmpty(ctx context.Context) error {
	for round := range b.inTime(b.rounds) {
		for _, s := range inRound(b.systems, round, false) {
			got, err := b.drainBy(ctx, draining{namespaces: 1}, s)
			if err != nil {
				return fmt.Errorf("by %s: %w", s.name, err)
			}
			b.note(s.name, figure{"gone after, ms", milliseconds(got.Took)}, figure{"requests", got.requests.total()})
		}
	}
	return nil
}

// drainBy starts the system on a cluster that holds the namespaces already.
func (b *bench) drainBy(ctx context.Context, d draining, s system) (m measured, err error) {
	batch, err := b.furnish(ctx, d)
	if err != nil {
		return m, err
	}
	r, err := b.startDraining(ctx, s)
	if err != nil {
		return m, err
	}
	defer b.end(r)
	if err := pause(ctx, digest); err != nil {
		return m, err
	}
	return b.drain(ctx, b.admin, batch)
}

// A batch is namespaces that are deleted together, and what is in them.
type batch struct {
	namespaces []load.Object
	content    []content
}

// content is one object in a namespace.
type content struct {
	kind      load.Kind
	namespace string
	load.Object
}

// furnish makes namespaces with their furniture and ConfigMaps, owners before what they own.
func (b *bench) furnish(ctx context.Context, d draining) (batch, error) {
	per := furniture + d.configMaps
	made := batch{make([]load.Object, d.namespaces), make([]content, d.namespaces*per)}
	err := load.Each(ctx, d.namespaces, func(ctx context.Context, i int) (err error) {
		made.namespaces[i], err = load.NewNamespace(ctx, b.admin.dynamic)
		return err
	})
	ownerOf := func(i int) int { // itself, if it has none
		if k := i%per - furniture; d.owned > 0 && k > 0 {
			return i - k%(d.owned+1)
		}
		return i
	}
	for _, owned := range []bool{false, true} {
		if err != nil {
			break
		}
		err = load.Each(ctx, len(made.content), func(ctx context.Context, i int) (err error) {
			if (ownerOf(i) != i) != owned {
				return nil
			}
			c := content{kind: load.ConfigMap, namespace: made.namespaces[i/per].Name}
			name := fmt.Sprintf("content-%d", i%per)
			switch i % per {
			case 0:
				name = "kube-root-ca.crt"
			case 1:
				c.kind, name = load.ServiceAccount, "default"
			}
			var owners []load.Object
			if owned {
				owners = append(owners, made.content[ownerOf(i)].Object)
			}
			c.Object, err = load.Create(ctx, b.admin.dynamic, c.kind, c.namespace, name, nil, owners...)
			made.content[i] = c
			return err
		})
	}
	return made, err
}

// drain has somebody delete the namespaces and measures what a running system makes of it, until
// the last is gone. The requests are those for every kind. Only the namespaces are watched: to see
// each of their objects go would cost as much as a part of the work.
func (b *bench) drain(ctx context.Context, who clients, made batch) (measured, error) {
	in := who.metadata.Resource(load.Namespace.GVR())
	f := &load.Follow{In: in, Pending: map[types.UID]bool{}, Patience: drainPatience}
	for _, ns := range made.namespaces {
		f.Pending[ns.UID] = false
	}
	m, err := b.counted(ctx, others, func() (load.Result, error) {
		result, err := f.Measure(ctx, func(ctx context.Context) error {
			return load.Each(ctx, len(made.namespaces), func(ctx context.Context, i int) error {
				ns := &made.namespaces[i]
				return in.Delete(ctx, ns.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &ns.UID}})
			})
		})
		if err == nil {
			err = pause(ctx, afterwards)
		}
		return result, err
	})
	if err != nil {
		return m, err
	}
	m.Dependents = len(made.content)
	m.requests["DELETE"] -= float64(len(made.namespaces)) // sent here
	return m, nil
}

// floorOfContent deletes by plain requests what is in namespaces, while they are ordinary ones, and
// measures until the last request is answered. No one watches: that makes the floor faster, if
// anything. The empty namespaces are removed.
func (b *bench) floorOfContent(ctx context.Context, d draining) (result load.Result, err error) {
	made, err := b.furnish(ctx, d)
	if err == nil {
		err = pause(ctx, digest)
	}
	if err != nil {
		return result, err
	}
	started := time.Now()
	err = load.Each(ctx, len(made.content), func(ctx context.Context, i int) error {
		c := made.content[i]
		return remove(ctx, b.self.metadata.Resource(c.kind.GVR()).Namespace(c.namespace), c.Object)
	})
	if err != nil {
		return result, err
	}
	result = load.Result{Dependents: len(made.content), Took: time.Since(started)}
	namespaces := b.admin.kube.CoreV1().Namespaces()
	return result, load.Each(ctx, len(made.namespaces), func(ctx context.Context, i int) error {
		meta := metav1.ObjectMeta{Name: made.namespaces[i].Name, UID: made.namespaces[i].UID}
		if err := namespaces.Delete(ctx, meta.Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		_, err := namespaces.Finalize(ctx, &corev1.Namespace{ObjectMeta: meta}, metav1.UpdateOptions{})
		return err
	})
}
