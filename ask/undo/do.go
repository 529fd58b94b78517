package undo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/weir-dev/weir/archive/restore"
	"github.com/weir-dev/weir/policies/v1beta1"
)

const (
	atOnce = 32 // steps
	// established is how long a definition may take until its kind is served.
	established = 30 * time.Second
)

// Done is what came of a step.
type Done struct {
	Step *restore.Step
	Note string // what was done otherwise than the step says
	Err  error
}

// Do does the steps of a plan, and calls say with what came of each, one after the other. A step
// that fails holds up those that need it, and no others: what is left out can be restored later.
func Do(ctx context.Context, client dynamic.Interface, p *restore.Plan, say func(Done)) {
	r := &run{client: client, tree: p.Tree, uids: map[restore.Ref]types.UID{}, failed: map[restore.Ref]bool{}}
	for steps := p.Acting(); len(steps) > 0; {
		n := 1
		for n < len(steps) && steps[n].Level == steps[0].Level {
			n++
		}
		done := make([]Done, n)
		uids := make([]types.UID, n)
		var group errgroup.Group
		group.SetLimit(atOnce)
		for i, s := range steps[:n] {
			group.Go(func() error {
				done[i] = Done{Step: s}
				uids[i], done[i].Note, done[i].Err = r.do(ctx, s)
				return nil
			})
		}
		_ = group.Wait() // errors are in done
		for i, d := range done {
			if d.Err != nil {
				r.failed[d.Step.Ref] = true
			} else {
				r.uids[d.Step.Ref] = uids[i]
			}
			say(d)
		}
		steps = steps[n:]
	}
}

// run knows what was done, up to the level that is being done.
type run struct {
	client dynamic.Interface
	tree   string
	uids   map[restore.Ref]types.UID
	failed map[restore.Ref]bool
}

func (r *run) of(s *restore.Step) dynamic.ResourceInterface { return resourceOf(r.client, s) }

func resourceOf(client dynamic.Interface, s *restore.Step) dynamic.ResourceInterface {
	return client.Resource(s.Ref.Kind.WithVersion(s.Version)).Namespace(s.Ref.Namespace)
}

func (r *run) do(ctx context.Context, s *restore.Step) (uid types.UID, note string, err error) {
	if s.Refused != "" {
		return "", "", errors.New(s.Refused)
	}
	references := s.References
	for _, l := range s.Links {
		if l.Reference.UID = r.uids[l.Owner]; l.Reference.UID == "" {
			return "", "", fmt.Errorf("its owner %s was not made", l.Owner)
		}
		references = append(references, l.Reference)
	}
	for _, before := range []restore.Ref{s.Definition, restore.NamespaceOf(s.Ref)} {
		if r.failed[before] {
			return "", "", fmt.Errorf("%s was not made", before)
		}
	}
	switch s.Outcome {
	case restore.Create, restore.Replace:
		return r.write(ctx, s, references)
	case restore.Free:
		_, err := r.patch(ctx, s, restore.FreedBy(s.Live))
		return s.UID, "", err
	}
	return r.complete(ctx, s, references)
}

// write creates an object, or puts it in the place of another.
func (r *run) write(ctx context.Context, s *restore.Step, references []metav1.OwnerReference) (
	uid types.UID, note string, err error) {
	o := s.Object.DeepCopy()
	o.SetOwnerReferences(append(o.GetOwnerReferences(), references...))
	write := func() (*unstructured.Unstructured, error) {
		if s.Outcome == restore.Replace {
			return r.of(s).Update(ctx, o, metav1.UpdateOptions{})
		}
		return r.create(ctx, s, o)
	}
	made, err := write()
	if without, ok := restore.WithoutAddresses(o); ok && apierrors.IsInvalid(err) {
		note = fmt.Sprintf("with other addresses and ports than it had: %v", err)
		o = without
		made, err = write()
	}
	if err != nil {
		return "", "", err
	}
	if s.Managers != nil {
		patch := map[string]any{"metadata": map[string]any{"uid": made.GetUID(), "managedFields": s.Managers}}
		if managed, err := r.patch(ctx, s, patch); err != nil {
			note = strings.TrimPrefix(fmt.Sprintf("%s; who manages its fields was not restored, and whoever applies it "+
				"on the server's side has conflicts: %v", note, err), "; ")
		} else {
			made = managed
		}
	}
	return made.GetUID(), note, r.writeStatus(ctx, s, made)
}

func (r *run) create(ctx context.Context, s *restore.Step, o *unstructured.Unstructured) (
	made *unstructured.Unstructured, err error) {
	try := func(ctx context.Context) (bool, error) {
		made, err = r.of(s).Create(ctx, o, metav1.CreateOptions{})
		// A kind is served a moment after its definition is there.
		return s.Definition == (restore.Ref{}) || !apierrors.IsNotFound(err), nil
	}
	if wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, established, true, try) != nil {
		return nil, fmt.Errorf("its kind is not served yet: kubectl get crd %s -o yaml says why: %w", s.Definition.Name, err)
	}
	if !apierrors.IsAlreadyExists(err) {
		return made, err
	}
	live, readErr := r.of(s).Get(ctx, o.GetName(), metav1.GetOptions{})
	if readErr != nil {
		return nil, err
	}
	same := live.GetAnnotations()[v1beta1.RestoredAnnotation] == o.GetAnnotations()[v1beta1.RestoredAnnotation]
	if live.GetDeletionTimestamp() == nil && (same || restore.Equal(s.Ref.Kind, o, live)) {
		return live, nil // another restore of the tree was faster, or what makes such objects by itself
	}
	return nil, fmt.Errorf("another object has its name by now: restore again to see what it is: %w", err)
}

// complete adds what an object lacks that this restore made.
func (r *run) complete(ctx context.Context, s *restore.Step, references []metav1.OwnerReference) (
	uid types.UID, note string, err error) {
	return uid, "", retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live, err := r.of(s).Get(ctx, s.Ref.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if uid = live.GetUID(); live.GetAnnotations()[v1beta1.RestoredAnnotation] != r.tree+"/"+string(s.UID) {
			return errors.New("another object has its name since it was restored")
		}
		owners := live.GetOwnerReferences()
		for _, add := range references {
			if !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == add.UID }) {
				owners = append(owners, add)
			}
		}
		m := map[string]any{"uid": uid, "resourceVersion": live.GetResourceVersion(), "ownerReferences": owners}
		if s.Managers != nil {
			m["managedFields"] = s.Managers
		}
		patched, err := r.patch(ctx, s, map[string]any{"metadata": m})
		if err != nil {
			return err
		}
		return r.writeStatus(ctx, s, patched)
	})
}

func (r *run) patch(ctx context.Context, s *restore.Step, patch map[string]any) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	return r.of(s).Patch(ctx, s.Ref.Name, types.MergePatchType, data, metav1.PatchOptions{})
}

// writeStatus writes the status of an object that has none yet. A controller that is faster has the
// last word.
func (r *run) writeStatus(ctx context.Context, s *restore.Step, o *unstructured.Unstructured) error {
	if s.Status == nil {
		return nil
	}
	o.Object["status"] = s.Status
	if _, err := r.of(s).UpdateStatus(ctx, o, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("it was made, but its status was not written: %w", err)
	}
	return nil
}
