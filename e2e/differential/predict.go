package differential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Prediction is what `weir plan` says about a delete before it is made.
type Prediction struct {
	Items []PredictedItem `json:"items"`
}

// A PredictedItem is what is said of one object.
type PredictedItem struct {
	UID        types.UID `json:"uid"`
	Outcome    string    `json:"outcome"`
	Stage      int       `json:"stage"`
	Finalizers []string  `json:"finalizers"`
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
	return wrong
}
