package differential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// A Prediction is what `weir plan` says about a delete before it is made.
type Prediction struct {
	Items []PredictedItem `json:"items"`
}

// A PredictedItem is what is said of one object.
type PredictedItem struct {
	UID        types.UID `json:"uid"`
	Outcome    string    `json:"outcome"`
	Step       int       `json:"step"`
	Stage      int       `json:"stage"`
	Finalizers []string  `json:"finalizers"`
	Why        string    `json:"why"`
}

// now tells whether the object goes at once.
func (i PredictedItem) now() bool {
	return i.Outcome == "delete" && i.Stage == 0 && len(i.Finalizers) == 0
}

// Planner asks weir what a delete would do.
type Planner struct {
	Binary string
	// Kubeconfig is that of the side, by its name.
	Kubeconfig map[string]string
	turns      chan struct{}
}

// Plan is nil for an object that is not there.
func (p *Planner) Plan(ctx context.Context, s *Side, r *run, o Operation) (*Prediction, error) {
	uid, made := s.uid(r, o.Object)
	if !made {
		return nil, nil
	}
	m, err := s.at(r, o.Object).Get(ctx, r.name(o.Object), metav1.GetOptions{})
	if err != nil || m.UID != uid {
		return nil, ignore(err)
	}
	k := KindOf(o.Object)
	args := []string{
		"plan", k.gvr().GroupResource().String(), r.name(o.Object), "--cascade", strings.ToLower(string(o.Policy)), "-o", "json",
		"--kubeconfig", p.Kubeconfig[s.Name], "--cache-dir", p.Kubeconfig[s.Name] + ".cache",
	}
	if !k.Cluster {
		args = append(args, "-n", r.namespaces[o.Object])
	}
	cmd := exec.CommandContext(ctx, p.Binary, args...)
	out, err := cmd.Output()
	if err != nil {
		var said string
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			said = string(exit.Stderr)
		}
		return nil, fmt.Errorf("weir %s: %w\n%s", strings.Join(args, " "), err, said)
	}
	var prediction Prediction
	if err := json.Unmarshal(out, &prediction); err != nil {
		return nil, fmt.Errorf("weir %s: %w", strings.Join(args, " "), err)
	}
	return &prediction, nil
}

// wrong says in what a prediction differs from what happened: before is the state that it was made
// on, after the one that the delete led to. Of an object that the prediction does not name nothing
// may have changed.
func (s *Side) wrong(r *run, p *Prediction, before, after State) (wrong []string) {
	said := map[string]PredictedItem{}
	s.mu.Lock()
	for _, i := range p.Items {
		if who, ok := s.known[i.UID]; ok && who.run == r {
			said[who.name] = i
		}
	}
	s.mu.Unlock()
	for _, name := range before.names() {
		was, is := before.at(name), after.at(name)
		i, told := said[name]
		switch {
		case told && i.now() && is != nil:
			wrong = append(wrong, fmt.Sprintf("%s is to go, and is there: %s", name, is))
		case told && i.now():
		case is == nil:
			wrong = append(wrong, fmt.Sprintf("%s is gone, and was to stay: %+v", name, i))
		case told && i.Outcome == "delete" && len(i.Finalizers) > 0 && i.Stage == 0 && !is.Terminating:
			wrong = append(wrong, fmt.Sprintf("%s is to terminate, and does not: %s", name, is))
		case !told && was.String() != is.String():
			wrong = append(wrong, fmt.Sprintf("%s is not in the plan, and was %s, and is %s", name, was, is))
		case told && i.Outcome == "release" && i.Stage == 0 && len(is.Owners) >= len(was.Owners):
			wrong = append(wrong, fmt.Sprintf("%s is to lose a reference, and has not: %s", name, is))
		}
	}
	return append(wrong, s.misordered(r, said, before)...)
}

// misordered are the pairs of an owner and its dependent that went the other way round, although
// one waits for the other.
func (s *Side) misordered(r *run, said map[string]PredictedItem, before State) (wrong []string) {
	for dependent, d := range said {
		for _, ref := range before[dependent].Owners {
			o, ok := said[ref.Owner]
			if !ok || ref.Owner == dependent || !d.now() || !o.now() || d.Step == o.Step || !d.waits(ref, r.name(ref.Owner)) {
				continue
			}
			// The reference takes blockOwnerDeletion off whenever a dependent of the dependent is
			// being deleted foreground.
			if slices.ContainsFunc(before[ref.Owner].Owners, func(r Reference) bool { return r.Owner == dependent }) {
				continue
			}
			died, owners := s.deaths.of(d.UID), s.deaths.of(o.UID)
			if died == 0 || owners == 0 {
				continue // its watch is not there yet
			}
			if (d.Step < o.Step) != (died < owners) {
				wrong = append(wrong, fmt.Sprintf("%s goes in step %d and its owner %s in step %d, and they went the other way round", dependent, d.Step, ref.Owner, o.Step))
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}

// waits tells whether there is an order between the object and an owner of that name, to which it
// refers so: it goes because that is gone, or that waits for it. What does not block an owner that
// is deleted foreground goes before or after it, and so does what is released by it first and goes
// because of another.
func (i PredictedItem) waits(ref Reference, owner string) bool {
	return strings.Contains(i.Why, owner) && (strings.Contains(i.Why, "owner is gone") || ref.Block == Blocking && (ref.Flaw == Sound || ref.Flaw == OtherVersion))
}

// deaths are the revisions at which objects went, as watches tell: all kinds lie in the same
// storage.
type deaths struct {
	mu sync.Mutex
	at map[types.UID]uint64
}

func (d *deaths) of(uid types.UID) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at[uid]
}

// follow notes deaths until ctx ends.
func (d *deaths) follow(ctx context.Context, events <-chan watch.Event) {
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events:
			if !ok {
				return
			}
			m, isObject := e.Object.(*metav1.PartialObjectMetadata)
			if e.Type != watch.Deleted || !isObject {
				continue
			}
			var revision uint64
			if _, err := fmt.Sscan(m.ResourceVersion, &revision); err == nil {
				d.mu.Lock()
				d.at[m.UID] = revision
				d.mu.Unlock()
			}
		}
	}
}
