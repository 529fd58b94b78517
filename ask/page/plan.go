package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/ask/snapshot"
)

// outline is a plan laid over the tree.
type outline struct {
	*insight.Outline
	id      string
	of      types.UID
	cascade string
	scope   string // the namespace of the object; empty: it has none
	version int64
	// judged says that policies were asked, or could not be. They may read what no Follower has, so
	// the plan is made again when the user asks.
	judged bool
}

// plan answers with what the delete of an object does, laid over the tree below the object.
func (p *Page) plan(ctx context.Context, q url.Values) (any, error) {
	cascade := q.Get("cascade")
	propagation, ok := insight.Propagations[cascade]
	if !ok {
		return nil, bad("cascade: must be background, foreground or orphan")
	}
	o, err := p.named(q)
	if err != nil {
		return nil, err
	}
	leave, err := p.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	made := p.planned(func(k *outline) bool { return k.of == o.UID && k.cascade == cascade })
	switch {
	case made == nil || made.version != p.Follower.Version(made.scope):
	case q.Get("have") == made.id:
		return nil, errUnchanged
	case !made.judged:
		return made.told(p.Flags), nil
	}
	if made, err = p.make(ctx, o, cascade, propagation); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plans = slices.DeleteFunc(p.plans, func(k *outline) bool { return k.of == o.UID && k.cascade == cascade })
	p.plans = append(p.plans, made)
	if len(p.plans) > mostPlans {
		p.plans = slices.Delete(p.plans, 0, 1)
	}
	return made.told(p.Flags), nil
}

// planned returns a kept plan, or nil.
func (p *Page) planned(is func(*outline) bool) *outline {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.IndexFunc(p.plans, is); at >= 0 {
		return p.plans[at]
	}
	return nil
}

// make makes a plan.
func (p *Page) make(
	ctx context.Context, o *named, cascade string, propagation metav1.DeletionPropagation,
) (*outline, error) {
	w, err := p.world(o)
	if err != nil {
		return nil, err
	}
	d := insight.Deletion{Propagation: propagation}
	policies, err := p.Policies(ctx, w.World)
	if err == nil {
		err = ctx.Err() // a client that went away during the lists would leave a plan without policies
	}
	if err != nil {
		return nil, err
	}
	if policies != nil {
		var verdict insight.Verdict
		if whole, err := o.whole(ctx); err == nil {
			verdict = policies.Judge(ctx, whole.Unstructured, whole.gvr,
				metav1.DeleteOptions{PropagationPolicy: &propagation})
		} else if errors.Is(err, snapshot.ErrGone) {
			return nil, err
		} else {
			verdict.Doubt = err.Error()
		}
		if w.partly != "" && !verdict.Refused { // policies count only what is known
			verdict.Confirm, verdict.Doubt = "", cmp.Or(verdict.Doubt, w.partly)
		}
		verdict.Object = o.Object
		d.Verdicts = []insight.Verdict{verdict}
	}
	policies.Rule(ctx, &d)
	laid, ok := w.Outline(o.UID, d, time.Now())
	if !ok {
		return nil, o.missing(w.World)
	}
	laid.Plan.WithFlags(p.Flags)
	return &outline{
		Outline: laid, id: fmt.Sprintf("%s-%s-%d", o.UID, cascade, p.number.Add(1)), of: o.UID, cascade: cascade,
		scope: o.Namespace, version: w.version,
		judged: policies != nil || snapshot.PoliciesUnread(w.World),
	}, nil
}

// told returns the answer for a plan, without the lines below its root.
func (o *outline) told(flags string) any {
	return map[string]any{
		"id": o.id, "summary": o.Plan.Summary(), "totals": o.Plan.Totals(), "verdicts": o.Plan.Verdicts,
		"unread": o.Plan.Unread, "cascade": o.cascade, "flags": flags, "root": o.Root(),
	}
}

// kept returns a kept plan by its id.
func (p *Page) kept(q url.Values) (*outline, error) {
	if o := p.planned(func(k *outline) bool { return k.id == q.Get("plan") }); o != nil {
		return o, nil
	}
	return nil, refusal{http.StatusGone, errors.New("this plan is not kept any more: ask for a new one")}
}

// lines answers with some of the lines directly below a line of a plan.
func (p *Page) lines(_ context.Context, q url.Values) (any, error) {
	o, err := p.kept(q)
	if err != nil {
		return nil, err
	}
	below, err1 := strconv.Atoi(q.Get("below"))
	from, err2 := strconv.Atoi(q.Get("from"))
	if err := errors.Join(err1, err2); err != nil {
		return nil, bad("below, from: %w", err)
	}
	return map[string]any{"lines": o.Lines(below, from, mostLines)}, nil
}
