package page

import (
	"context"
	"net/url"
	"time"

	"github.com/weir-dev/weir/ask/insight"
)

// group is an insight.Group that may be cut, with its true size.
type group struct {
	insight.Group
	Total int `json:"total"`
}

// pending answers with all that is being deleted, by who has to act.
func (p *Page) pending(ctx context.Context, q url.Values) (any, error) {
	return p.survey(ctx, q, "groups", func(w *insight.World) any {
		if p.Heard != nil {
			p.Heard(ctx, w, q.Get("namespace"))
		}
		groups := []group{}
		for _, g := range w.Pending(time.Now()) {
			one := group{g, len(g.Items)}
			one.Items = g.Items[:min(len(g.Items), mostListed)]
			groups = append(groups, one)
		}
		return groups
	})
}

// fate is some orphans with the same fate.
type fate struct {
	Fate  string           `json:"fate"`
	Items []insight.Orphan `json:"items"`
	Total int              `json:"total"`
}

// orphans answers with the objects whose owners are gone or cannot be determined, by their fates.
func (p *Page) orphans(ctx context.Context, q url.Values) (any, error) {
	return p.survey(ctx, q, "fates", func(w *insight.World) any {
		all := w.Orphans()
		fates := []fate{}
		for _, name := range []string{"delete", "release", "keep"} {
			f := fate{Fate: name}
			for _, o := range all {
				if o.Fate != name {
					continue
				}
				if f.Total++; f.Total <= mostListed {
					f.Items = append(f.Items, o)
				}
			}
			if f.Total > 0 {
				fates = append(fates, f)
			}
		}
		return fates
	})
}

// guarded answers with what is held until a person decides, and what was refused or kept lately.
func (p *Page) guarded(ctx context.Context, q url.Values) (any, error) {
	return p.survey(ctx, q, "guarded", func(w *insight.World) any {
		held, events := p.Guarded(ctx, w)
		all := []map[string]any{}
		for _, h := range held {
			all = append(all, map[string]any{"name": h.GetName(), "status": h.Object["status"]})
		}
		refused := w.Refusals(events, time.Now())
		return map[string]any{
			"held": all, "refused": refused[:min(len(refused), mostListed)], "total": len(refused), "flags": p.Flags,
		}
	})
}

// DeletedTree is a tree that can be restored, as kubectl weir deleted prints it.
type DeletedTree struct {
	Tree     string `json:"tree"`
	Object   string `json:"object"`
	Recorded string `json:"recorded"`
	Deleted  string `json:"deleted"`
	Expires  string `json:"expires"`
}

// deleted answers with what was deleted and can be restored, the newest first.
func (p *Page) deleted(ctx context.Context, q url.Values) (any, error) {
	version, err := p.fresh(q, "")
	if err != nil {
		return nil, err
	}
	trees, err := p.Deleted(ctx, q.Get("namespace"))
	return map[string]any{
		"version": version, "trees": trees[:min(len(trees), mostListed)], "total": len(trees), "flags": p.Flags,
	}, err
}

// survey answers a question about a namespace, or the cluster, unless the client has the current
// answer.
func (p *Page) survey(ctx context.Context, q url.Values, field string, look func(*insight.World) any) (any, error) {
	namespace := q.Get("namespace")
	version, err := p.fresh(q, namespace)
	if err != nil {
		return nil, err
	}
	leave, err := p.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	w, err := p.Follower.World(namespace)
	if err != nil {
		return nil, err
	}
	return map[string]any{"version": version, field: look(w), "unread": w.Unread()}, nil
}
