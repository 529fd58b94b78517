package undo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/archive"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies/v1beta1"
)

const (
	// mostTries is how often objects are read again that have changed since they were read.
	mostTries = 3
	// mostGets is how many objects of a kind in a namespace are read one by one, and not by a list.
	mostGets = 10
	// mostMissed is how many missed objects a tree names.
	mostMissed = 20
)

// gone is the version of an object that was not there when it was read.
const gone = math.MaxUint64

// errEnough: the consumer of the objects stopped.
var errEnough = errors.New("no more objects are wanted")

// reading reads the objects that go with a root.
type reading struct {
	*Recorder
	Unrecorded
	tree  *v1beta1.DeletedTree
	got   map[types.UID]uint64 // versions of the objects that were read
	yield func(archive.Object, error) bool
}

// place is a kind and namespace, whose objects are listed together.
type place struct {
	kind      schema.GroupResource
	namespace string
}

// objects yields the root and the objects that go with it. An object that changed meanwhile comes
// again.
func (r *reading) objects(ctx context.Context) iter.Seq2[archive.Object, error] {
	return func(yield func(archive.Object, error) bool) {
		r.yield = yield
		if err := r.all(ctx); err != nil && !errors.Is(err, errEnough) {
			yield(archive.Object{}, err)
		}
	}
}

func (r *reading) all(ctx context.Context) error {
	for try := 0; ; try++ {
		changed, err := r.changed()
		if err != nil || len(changed) == 0 {
			return err
		}
		for _, at := range slices.SortedFunc(maps.Keys(changed), func(a, b place) int {
			return cmp.Or(cmp.Compare(a.kind.String(), b.kind.String()), cmp.Compare(a.namespace, b.namespace))
		}) {
			if try > mostTries {
				r.miss(changed[at], "it was still being changed when it was recorded")
				continue
			}
			err := r.at(ctx, at, changed[at])
			switch {
			case err == nil:
			case r.Archive.Fail || errors.Is(err, errEnough) || ctx.Err() != nil:
				return err
			default:
				r.miss(changed[at], err.Error())
			}
		}
		if try > mostTries {
			return nil
		}
	}
}

// changed returns the objects that go with the root and were not read as the graph has them now.
func (r *reading) changed() (map[place][]graph.Ref, error) {
	var all []graph.Ref
	complete := false
	with := graph.Search{UID: r.Root.UID, Kept: r.Keeps}
	if r.Root.Kind == kinds.Namespaces {
		with.Namespace = r.Root.Name
	}
	r.Store.Read(func(g *graph.Graph) { all, complete = g.Goes(with) })
	unlisted := r.Store.Incomplete(r.Root.UID)
	switch {
	case complete && unlisted == "":
	case r.Archive.Fail:
		return nil, fmt.Errorf("what depends on it is not known, since not all kinds are listed: %s", unlisted)
	case len(r.got) == 0:
		r.tree.Status.Missed = []v1beta1.MissedObject{{Object: words.Cut(r.Root.String(), 640),
			Why: words.Cut("it may have dependents of kinds that are not listed: "+unlisted, 1024)}}
	}
	changed := map[place][]graph.Ref{}
	for i, ref := range all {
		if i > 0 && !r.Archive.Records(ref.Kind) {
			continue
		}
		if version, read := r.got[ref.UID]; !read || version < graph.VersionNumber(ref.ResourceVersion) {
			at := place{ref.Kind, ref.Namespace}
			changed[at] = append(changed[at], ref)
		}
	}
	return changed, nil
}

// at reads objects of a kind in a namespace: one by one if they are few.
func (r *reading) at(ctx context.Context, at place, refs []graph.Ref) error {
	wanted := make(map[types.UID]graph.Ref, len(refs))
	for _, ref := range refs {
		wanted[ref.UID] = ref
	}
	take := func(raw json.RawMessage) error { return r.take(at.kind, raw, wanted) }
	if len(refs) > mostGets {
		if err := r.Requester.EachRaw(ctx, at.kind, at.namespace, take); err != nil {
			return err
		}
	} else {
		for _, ref := range refs {
			raw, err := r.Requester.GetRaw(ctx, ref)
			if request.NoSuchObject(err, ref.Kind, ref.Name) {
				continue
			}
			if err == nil {
				err = take(raw)
			}
			if err != nil {
				return fmt.Errorf("read %s: %w", ref, err)
			}
		}
	}
	for uid := range wanted { // deleted by others, and not with the root
		r.got[uid] = gone
	}
	return nil
}

// take yields an object, if it is wanted.
func (r *reading) take(kind schema.GroupResource, raw json.RawMessage, wanted map[types.UID]graph.Ref) error {
	var m metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &m); err != nil {
		return fmt.Errorf("decode an object of %s: %w", kind, err)
	}
	if _, ok := wanted[m.UID]; !ok {
		return nil
	}
	delete(wanted, m.UID)
	_, again := r.got[m.UID]
	r.got[m.UID] = graph.VersionNumber(m.ResourceVersion)
	gvk := r.Requester.KindOf(kind)
	if m.Kind == "" {
		head := fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,`, gvk.Kind, gvk.GroupVersion().String())
		raw = slices.Concat(head, bytes.TrimSpace(raw)[1:])
	}
	if !r.yield(archive.Object{Resource: kind.WithVersion(gvk.Version), Raw: raw, Again: again}, nil) {
		return errEnough
	}
	return nil
}

// miss records objects that the tree lacks, or has in an older state.
func (r *reading) miss(refs []graph.Ref, why string) {
	for _, ref := range refs {
		r.got[ref.UID] = gone
		missed(r.tree, ref.String(), why)
	}
}

// missed counts an object that the tree lacks, and names the first ones.
func missed(tree *v1beta1.DeletedTree, object, why string) {
	s := &tree.Status
	if s.MissedObjects++; len(s.Missed) < mostMissed {
		s.Missed = append(s.Missed, v1beta1.MissedObject{Object: words.Cut(object, 640), Why: words.Cut(why, 1024)})
	}
}
