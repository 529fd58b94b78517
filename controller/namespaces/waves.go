package namespaces

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/undo"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// order is the order in which the content of a namespace is deleted: that of a DrainPolicy, or
// without one that of Kubernetes.
type order struct{ policy *policies.Drain }

// orderOf returns the order of a namespace. mine is false if Weir does not drain it.
func (d *Drainer) orderOf(ns *corev1.Namespace) (o order, mine bool, err error) {
	if d.Policies == nil {
		return order{}, !d.Companion, nil
	}
	if err := d.Policies.Ready(); err != nil { // a wrong order is worse than waiting
		return order{}, false, fmt.Errorf("find the order in which namespace %s drains: %w", ns.Name, err)
	}
	obj, err := asObject(ns)
	if err != nil {
		return order{}, false, err
	}
	o.policy = d.Policies.Set().DrainOf(obj)
	return o, o.policy != nil || !d.Companion, nil
}

func asObject(ns *corev1.Namespace) (map[string]any, error) {
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ns)
	if err != nil {
		return nil, fmt.Errorf("convert namespace %s: %w", ns.Name, err)
	}
	return obj, nil
}

func (o order) waves() []drain.Wave {
	if o.policy == nil {
		return drain.DefaultWaves()
	}
	return o.policy.Waves
}

// named returns the name by which a policy orders a kind: that of its twins whose wave comes first.
func (o order) named(kind schema.GroupResource) schema.GroupResource {
	name := kind
	for twin, of := range kinds.Twins {
		if of == kind && o.policy.WavesOf(twin)[0] < o.policy.WavesOf(name)[0] {
			name = twin
		}
	}
	return name
}

// wavesOf returns the waves that objects of a kind can be in, in order.
func (o order) wavesOf(kind schema.GroupResource) []int {
	if o.policy == nil {
		return []int{drain.DefaultWave(kind)}
	}
	return o.policy.WavesOf(o.named(kind))
}

// waveOf returns the wave of an object.
func (o order) waveOf(kind schema.GroupResource, labels map[string]string) int {
	if o.policy == nil {
		return drain.DefaultWave(kind)
	}
	set := make(map[string]any, len(labels))
	for k, v := range labels {
		set[k] = v
	}
	return o.policy.Wave(o.named(kind), map[string]any{"metadata": map[string]any{"labels": set}})
}

// unrecorded returns why nothing of the namespace may be deleted yet: a policy wants the namespace
// and its content recorded first.
func (p *pass) unrecorded() string {
	if p.Archive == nil || p.order.policy == nil || p.order.policy.Archive == nil {
		return ""
	}
	d, name := p.Drainer, p.ns.Name
	root, known := p.Store.Find(p.ns.UID)
	p.shown = p.shown || known && p.Watcher.Shown(root.Ref)
	if !p.shown {
		d.wake(name, "the watches may have shown what is in it", showTime)
		return "what is in it has not all been seen"
	}
	why, _ := p.Archive.Recorded(undo.Unrecorded{Root: root, Deleted: *p.ns.DeletionTimestamp,
		Archive: *p.order.policy.Archive, Again: func() { d.wake(name, "whether it is recorded is known", 0) }})
	return why
}

// place reads which wave is under way, and since when. Only waves of a policy are written down.
func (p *pass) place() (wave int, since time.Time, err error) {
	if p.order.policy == nil {
		return 0, time.Time{}, nil
	}
	obj, err := asObject(p.ns)
	if err != nil {
		return 0, time.Time{}, err
	}
	var sealed func(text, seal string) bool
	if p.Seals != nil {
		sealed = p.Seals.Sealed // none is while the key is not known; then enter writes nothing, either
	}
	wave, since = p.order.policy.Current(obj, p.Clock.Now(), sealed)
	return wave, since, nil
}

// Sealer seals what Weir writes for itself where others may write, too.
type Sealer interface {
	// Seal returns the seal of a text; ok is false while the key is not known.
	Seal(text string) (seal string, ok bool)
	// Sealed reports whether seal is the seal of text.
	Sealed(text, seal string) bool
}

// age returns how long a wave has been under way. If another process wrote since, or this one
// before a restart, the API server's clock tells its age once; from then on the local clock counts.
func (p *pass) age(since time.Time) time.Duration {
	if !p.written.Equal(since) {
		p.written, p.writtenAt = since, time.Now().Add(-max(0, p.Clock.Now().Sub(since)))
	}
	return time.Since(p.writtenAt)
}

// mark writes into the namespace which wave is under way, unless it says so already. The webhook
// reads it to hold later waves, and the next leader to go on. same is false if the namespace is
// gone or was replaced.
func (p *pass) mark(ctx context.Context, wave int) (same bool, err error) {
	if p.order.policy == nil || p.marked && p.state.Current == wave {
		return true, nil
	}
	return p.enter(ctx, wave)
}

// enter begins a wave, and writes that into the namespace.
func (p *pass) enter(ctx context.Context, wave int) (same bool, err error) {
	since := p.Clock.Now().UTC().Round(time.Millisecond)
	if deleted := p.ns.DeletionTimestamp.Time; since.Before(deleted) {
		since = deleted // clocks differ a little; an older time would not count
	}
	if !since.After(p.written) {
		since = p.written.Add(time.Millisecond) // a later time than the one before
	}
	name := p.state.Waves[wave].Name
	annotations := map[string]string{
		v1beta1.DrainAnnotation:      name,
		v1beta1.DrainSinceAnnotation: since.UTC().Format(time.RFC3339Nano),
	}
	if p.Seals != nil {
		seal, known := p.Seals.Seal(policies.Sealed(string(p.ns.UID), name, annotations[v1beta1.DrainSinceAnnotation]))
		if !known {
			return false, fmt.Errorf("note wave %s in namespace %s: the key to seal it with is not known yet", name, p.ns.Name)
		}
		annotations[v1beta1.DrainSealAnnotation] = seal
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.ns.UID, "annotations": annotations}})
	if err != nil {
		return false, fmt.Errorf("encode patch: %w", err)
	}
	ns, err := p.Namespaces.Patch(ctx, p.ns.Name, types.MergePatchType, body, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		// The namespace may have another uid by now. A code that a webhook chose, or a 404 of a load
		// balancer, does not show that.
		if is, failed := p.reread(ctx, p.ns.Name, p.ns.UID); is == nil {
			return false, failed
		}
	}
	if err != nil {
		return false, fmt.Errorf("note wave %s in namespace %s: %w", name, p.ns.Name, err)
	}
	p.Log.Info("wave begins", "namespace", ns.Name, "wave", name, "policy", p.order.policy.Policy)
	p.written, p.writtenAt = since, time.Now()
	p.ns, p.state.Current, p.state.Age, p.marked = ns, wave, 0, true
	return true, nil
}
