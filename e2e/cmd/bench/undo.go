package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/e2e/load"
)

const (
	// aloneToUndo is how many objects are deleted one by one: of fewer there is no 99th percentile.
	aloneToUndo = 300
	noPolicy    = "no policy"
	held        = "held"
	archived    = "archived"
)

// undoLabels are those of what a policy is about: one archives it, and one has it held and no more.
func undoLabels(who string) map[string]string {
	if who == noPolicy {
		return nil
	}
	return map[string]string{"undo": who}
}

var undoPolicies = policy(archived, "DeletionPolicy", `archive: {}, failurePolicy: Fail, match: {`+
	`resources: [{apiGroups: [""], resources: [configmaps, namespaces]}], objectSelector: {matchLabels: {undo: archived}}}`) +
	policy(held, "DeletionPolicy", `propagation: {default: Foreground}, match: {`+
		`resources: [{apiGroups: [""], resources: [configmaps]}], objectSelector: {matchLabels: {undo: held}}}`)

// whileArchiving does something while weir runs with the policies, in replace mode.
func (b *bench) whileArchiving(ctx context.Context, do func(*guard) error) (err error) {
	if err := load.CreateCRDs(ctx, b.Config, "../policies/crds"); err != nil {
		return err
	}
	g, err := b.startPair(ctx, undoPolicies, "replace")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.stop(ctx)) }()
	for _, who := range []string{held, archived} {
		if err := b.awaitFinalizers(ctx, undoLabels(who)); err != nil {
			return err
		}
	}
	return do(g)
}

// measureUndoAlone tells what a user waits for, and how long an object without dependents is held:
// one that is archived, one that is only held, and one that no policy is about.
func (b *bench) measureUndoAlone(ctx context.Context) error {
	return b.whileArchiving(ctx, func(*guard) error {
		for range b.inTime(b.rounds) {
			var answeredPlain, gonePlain float64
			for _, who := range []string{noPolicy, held, archived} {
				p, err := b.populate(ctx, load.Loose(aloneToUndo, undoLabels(who)))
				if err != nil {
					return err
				}
				all, err := b.endings(ctx, p)
				if err != nil {
					return err
				}
				answered, gone := percentile(all.answered, 50), percentile(all.gone, 50)
				if who == noPolicy {
					answeredPlain, gonePlain = answered, gone
				}
				b.note(who, figure{"DELETE answered, p50, ms", answered}, figure{"of no policy", answered / answeredPlain},
					figure{"gone, p50, ms", gone}, figure{"gone, of no policy", gone / gonePlain},
					figure{"gone, p99, ms", percentile(all.gone, 99)})
			}
		}
		return nil
	})
}

// measureUndoTree has an owner deleted with n dependents, archived and not, each by another process,
// and what was archived restored.
func (b *bench) measureUndoTree(ctx context.Context) error {
	for range b.inTime(b.rounds) {
		var plain undone
		for _, who := range []string{noPolicy, archived} {
			var x undone
			err := b.whileArchiving(ctx, func(g *guard) (err error) {
				if x, err = b.undoingTree(ctx, g, who); err != nil {
					return err
				}
				if who == noPolicy {
					plain = x
				}
				n := float64(x.Dependents)
				b.note(who, figure{"objects", n}, figure{"objects/s", x.Rate()}, figure{"of no policy", x.Rate() / plain.Rate()},
					figure{"first after, ms", milliseconds(x.First)}, figure{"requests each, about all kinds", x.perObject()},
					figure{"more of them", x.perObject() - plain.perObject()}, figure{"RSS at most, MB", mb(x.most)},
					figure{"more of it", mb(x.most) - mb(plain.most)})
				if who == noPolicy {
					return nil
				}
				return b.restoring(ctx, x)
			})
			if err == nil {
				err = b.clean(ctx, x.population)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", who, err)
			}
		}
	}
	return nil
}

// undone is a tree that was deleted. The requests are those about all kinds.
type undone struct {
	measured
	population *load.Population
	made       time.Duration
	json       int    // bytes of it
	most       uint64 // bytes that the controller held
}

func (b *bench) undoingTree(ctx context.Context, g *guard, who string) (x undone, err error) {
	layout := load.Tree(b.n)
	layout.OwnerLabels = undoLabels(who)
	began := time.Now()
	if x.population, err = load.Populate(ctx, b.Config, layout); err != nil {
		return x, err
	}
	x.made = time.Since(began)
	list, err := b.admin.kube.CoreV1().RESTClient().Get().Namespace(x.population.Namespace).Resource("configmaps").DoRaw(ctx)
	if err == nil {
		err = pause(ctx, digest)
	}
	if err != nil {
		return x, err
	}
	x.json = len(list)
	x.measured, err = b.counted(ctx, others, func() (result load.Result, err error) {
		_, x.most, err = peak(g.controller.Child, func() error {
			m, err := b.cascade(ctx, b.user, x.population, background)
			result = m.Result
			return err
		})
		return result, err
	})
	return x, err
}

// restoring finds the tree of what was deleted, and has it restored as its user would.
func (b *bench) restoring(ctx context.Context, x undone) error {
	trees := schema.GroupVersionResource{Group: "weir.dev", Version: "v1beta1", Resource: "deletedtrees"}
	list, err := b.admin.dynamic.Resource(trees).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	n, tree, sealed := x.Dependents+1, "", int64(0)
	for _, t := range list.Items {
		uid, _, _ := unstructured.NestedString(t.Object, "spec", "root", "uid")
		objects, _, _ := unstructured.NestedInt64(t.Object, "status", "objects")
		if types.UID(uid) == x.population.Owner.UID && objects == int64(n) {
			tree = t.GetName()
			sealed, _, _ = unstructured.NestedInt64(t.Object, "status", "bytes")
		}
	}
	if tree == "" {
		return fmt.Errorf("no tree has the owner and its %d dependents", n-1)
	}
	b.note("its archive", figure{"sealed, MB", mb(uint64(sealed))}, figure{"of its JSON", float64(sealed) / float64(x.json)})
	began := time.Now()
	m, err := b.counted(ctx, others, func() (r load.Result, err error) {
		cmd := exec.CommandContext(ctx, b.plugin, "restore", tree, "--weir-namespace", metav1.NamespaceSystem,
			"--kubeconfig", b.user.kubeconfig, "--cache-dir", b.Dir)
		out, err := cmd.CombinedOutput()
		if made := strings.Count(string(out), "restored "); err != nil || made != n {
			err = fmt.Errorf("%d of %d objects were restored: %w; it ends with %q", made, n, err, out[max(0, len(out)-500):])
		}
		return load.Result{Dependents: n, Took: time.Since(began)}, err
	})
	if err != nil {
		return err
	}
	b.note("restored by kubectl weir", figure{"objects/s", m.Rate()},
		figure{fmt.Sprintf("of %d plain creators", load.Clients), x.made.Seconds() / m.Took.Seconds()},
		figure{"requests each", m.perObject()}, figure{"took, s", m.Took.Seconds()})
	return nil
}

// measureUndoNamespace has namespaces deleted that are full, archived and not.
func (b *bench) measureUndoNamespace(ctx context.Context) error {
	return b.whileArchiving(ctx, func(*guard) error {
		if _, err := b.undoingNamespace(ctx, 0, noPolicy); err != nil { // until it drains
			return err
		}
		for range b.inTime(b.rounds) {
			plain := 0.0
			for _, who := range []string{noPolicy, archived} {
				x, err := b.undoingNamespace(ctx, b.namespaceN, who)
				if err != nil {
					return fmt.Errorf("%s: %w", who, err)
				}
				if who == noPolicy {
					plain = x.Rate()
				}
				b.note(who, figure{"objects", float64(x.Dependents)}, figure{"objects/s", x.Rate()}, figure{"of no policy", x.Rate() / plain},
					figure{"requests each", x.perObject()}, figure{"took, s", x.Took.Seconds()})
			}
		}
		return nil
	})
}

func (b *bench) undoingNamespace(ctx context.Context, n int, who string) (m measured, err error) {
	made, err := b.furnish(ctx, draining{namespaces: 1, configMaps: n})
	if err != nil {
		return m, err
	}
	label := fmt.Appendf(nil, `{"metadata":{"labels":{"undo":%q}}}`, strings.ReplaceAll(who, " ", "-"))
	_, err = b.admin.kube.CoreV1().Namespaces().Patch(ctx, made.namespaces[0].Name, types.MergePatchType, label, metav1.PatchOptions{})
	if err == nil {
		err = pause(ctx, digest)
	}
	if err != nil {
		return m, err
	}
	return b.drain(ctx, b.user, made)
}
