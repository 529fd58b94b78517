package e2e

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/e2e/plane"
)

// patience is how long a test waits for what should take milliseconds: the
// machine may have other things to do.
const patience = 4 * time.Minute

// until waits for something in the cluster; what says what.
func (w *fixture) until(what string, holds func(context.Context) (bool, error)) {
	w.Helper()
	if err := plane.Poll(w.Context(), patience, holds); err != nil {
		w.Fatalf("wait until %s: %v", what, err)
	}
}

// get reads an object; nil when it is gone, even if another has its name.
func (w *fixture) get(name string) *unstructured.Unstructured {
	w.Helper()
	o := w.of(name)
	found, err := w.at(o).Get(w.Context(), o.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && found.GetUID() != o.uid {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	return found
}

// awaitCached waits until the API server has an object in its watch cache as it is stored. It
// begins a write with what it has there, and asks webhooks once more if that was old.
func (w *fixture) awaitCached(name string) {
	w.Helper()
	o := w.of(name)
	w.until(name+" is in the watch cache", func(ctx context.Context) (bool, error) {
		cached, err := w.at(o).Get(ctx, o.name, metav1.GetOptions{ResourceVersion: "0"})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		stored := w.get(name)
		return err == nil && stored != nil && cached.GetResourceVersion() == stored.GetResourceVersion(), err
	})
}

// owners is how an object's references are written.
func (w *fixture) owners(name string) string {
	w.Helper()
	o := w.get(name)
	if o == nil {
		return "it is gone"
	}
	return ownersText(o.GetOwnerReferences())
}

// left are those of the objects that are still there, sorted.
func (w *fixture) left(ctx context.Context, names []string) ([]string, error) {
	byPlace := map[schema.GroupVersionResource]map[string][]string{}
	for _, name := range names {
		o := w.of(name)
		if byPlace[o.gvr()] == nil {
			byPlace[o.gvr()] = map[string][]string{}
		}
		byPlace[o.gvr()][o.namespace] = append(byPlace[o.gvr()][o.namespace], name)
	}
	var left []string
	for _, places := range byPlace {
		for _, candidates := range places {
			list, err := w.at(w.of(candidates[0])).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue // the kind is gone, and all of it
			}
			if err != nil {
				return nil, err
			}
			for _, name := range candidates {
				uid := w.of(name).uid
				if slices.ContainsFunc(list.Items, func(u unstructured.Unstructured) bool { return u.GetUID() == uid }) {
					left = append(left, name)
				}
			}
		}
	}
	slices.Sort(left)
	return left, nil
}

// awaitGone waits until none of the objects is there any more.
func (w *fixture) awaitGone(names ...string) {
	w.Helper()
	w.awaitGoneIn(patience, names...)
}

func (w *fixture) awaitGoneIn(patience time.Duration, names ...string) {
	w.Helper()
	var left []string
	err := plane.Poll(w.Context(), patience, func(ctx context.Context) (bool, error) {
		var err error
		left, err = w.left(ctx, names)
		return len(left) == 0, err
	})
	if err != nil {
		w.Fatalf("wait until %d objects are gone: %v; still there: %s", len(names), err, strings.Join(left[:min(len(left), 10)], ", "))
	}
}

// awaitOwners waits until an object's references are these and no others.
func (w *fixture) awaitOwners(name, want string) {
	w.Helper()
	var have string
	err := plane.Poll(w.Context(), patience, func(context.Context) (bool, error) {
		o := w.get(name)
		if o == nil {
			return false, errors.New("it is gone")
		}
		have = ownersText(o.GetOwnerReferences())
		return have == want, nil
	})
	if err != nil {
		w.Fatalf("wait until the owners of %s are (%s): %v; they are (%s)", name, want, err, have)
	}
}

// awaitFinalizers waits until an object has these finalizers and no others.
func (w *fixture) awaitFinalizers(name string, want ...string) {
	w.Helper()
	var have []string
	err := plane.Poll(w.Context(), patience, func(context.Context) (bool, error) {
		o := w.get(name)
		if o == nil {
			return false, errors.New("it is gone")
		}
		have = o.GetFinalizers()
		return slices.Equal(have, want), nil
	})
	if err != nil {
		w.Fatalf("wait until the finalizers of %s are %v: %v; they are %v", name, want, err, have)
	}
}

// awaitTerminating waits until an object is being deleted.
func (w *fixture) awaitTerminating(name string) {
	w.Helper()
	w.until(name+" is being deleted", func(context.Context) (bool, error) {
		o := w.get(name)
		if o == nil {
			return false, errors.New("it is gone")
		}
		return o.GetDeletionTimestamp() != nil, nil
	})
}

// mustStay settles, and then looks whether the objects are there and alive.
func (w *fixture) mustStay(names ...string) {
	w.Helper()
	w.settle()
	w.alive(names...)
}

// mustBeThere settles, and then looks whether the objects are there, be they
// terminating or not.
func (w *fixture) mustBeThere(names ...string) {
	w.Helper()
	w.settle()
	left, err := w.left(w.Context(), names)
	if err != nil {
		w.Fatal(err)
	}
	if slices.Sort(names); !slices.Equal(left, names) {
		w.Errorf("of %v there are only %v", names, left)
	}
}

// alive looks whether objects are there and are not being deleted.
func (w *fixture) alive(names ...string) {
	w.Helper()
	for _, name := range names {
		switch o := w.get(name); {
		case o == nil:
			w.Errorf("%s is gone", name)
		case o.GetDeletionTimestamp() != nil:
			w.Errorf("%s is being deleted", name)
		}
	}
}
