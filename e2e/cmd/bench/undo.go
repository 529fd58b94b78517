package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/load"
)

const (
	undoAlone     = "undo, objects that are deleted one by one"
	undoTree      = "undo, a tree"
	undoNamespace = "undo, a namespace"

	// aloneToUndo is how many objects are deleted one by one: of fewer there is no 99th percentile.
	aloneToUndo = 300
	undoLabel   = "undo"
	noPolicy    = "no policy"
	archived    = "archived"
)

// undoPolicies are about what carries the label: one archives it, and one has it held and no more.
const undoPolicies = `
apiVersion: weir.dev/v1beta1
kind: DeletionPolicy
metadata: {name: archived}
spec:
  archive: {}
  failurePolicy: Fail
  match:
    resources: [{apiGroups: [""], resources: [configmaps, namespaces]}]
    objectSelector: {matchLabels: {undo: archived}}
---
apiVersion: weir.dev/v1beta1
kind: DeletionPolicy
metadata: {name: held}
spec:
  propagation: {default: Foreground}
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    objectSelector: {matchLabels: {undo: held}}
`

// undoUser is who deletes, and restores.
type undoUser struct {
	*rest.Config
	kubeconfig string
	weir       *load.Guard
}

// whileArchiving does something while weir runs with the policies, in replace mode.
func (b *bench) whileArchiving(ctx context.Context, do func(undoUser) error) (err error) {
	cfg, kubeconfig, err := load.User(ctx, b.plane, "bench")
	if err != nil {
		return err
	}
	if err := load.CreateCRDs(ctx, b.plane.Config, "../policies/crds"); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(b.plane.Dir, "policies-")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "policies.yaml"), []byte(undoPolicies), 0o644); err != nil {
		return err
	}
	g, err := load.StartWeirPair(ctx, b.plane, b.weir, b.kubeconfig, dir, "replace", b.weirFlags...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Stop(ctx)) }()
	for _, value := range []string{"held", archived} {
		if err := load.AwaitFinalizers(ctx, cfg, map[string]string{undoLabel: value}); err != nil {
			return err
		}
	}
	return do(undoUser{cfg, kubeconfig, g})
}

// measureUndoAlone tells what a user waits for, and how long an object without dependents is held:
// one that is archived, one that is only held, and one that no policy is about.
func (b *bench) measureUndoAlone(ctx context.Context, r *report) error {
	return b.whileArchiving(ctx, func(user undoUser) error {
		for range b.inTime(b.rounds) {
			var answeredPlain, gonePlain time.Duration
			for _, who := range []string{noPolicy, "held", archived} {
				layout := load.Loose(aloneToUndo)
				if who != noPolicy {
					layout.Labels = map[string]string{undoLabel: who}
				}
				p, err := b.populate(ctx, layout)
				if err != nil {
					return err
				}
				all, err := load.Endings(ctx, b.plane.Config, user.Config, p)
				if err != nil {
					return err
				}
				answered := percentile(all, 50, func(e load.Ending) time.Duration { return e.Answered })
				of := func(e load.Ending) time.Duration { return e.Gone }
				gone := percentile(all, 50, of)
				if who == noPolicy {
					answeredPlain, gonePlain = answered, gone
				}
				r.note(who, figure{"DELETE answered, p50, ms", milliseconds(answered)},
					figure{"of no policy", float64(answered) / float64(answeredPlain)},
					figure{"gone, p50, ms", milliseconds(gone)}, figure{"gone, of no policy", float64(gone) / float64(gonePlain)},
					figure{"gone, p99, ms", milliseconds(percentile(all, 99, of))})
			}
		}
		return nil
	})
}

// measureUndoTree has an owner deleted with n dependents, archived and not, each by another process,
// and what was archived restored.
func (b *bench) measureUndoTree(ctx context.Context, r *report) error {
	for range b.inTime(b.rounds) {
		var plain undone
		for _, who := range []string{noPolicy, archived} {
			var p *load.Population
			err := b.whileArchiving(ctx, func(user undoUser) error {
				x, err := b.undoingTree(ctx, user, who)
				if err != nil {
					return err
				}
				if who == noPolicy {
					plain = x
				}
				p = x.population
				n := float64(len(p.Dependents))
				r.note(who, figure{"objects", n}, figure{"objects/s", x.Rate()}, figure{"of no policy", x.Rate() / plain.Rate()},
					figure{"first after, ms", milliseconds(x.First)}, figure{"requests each, about all kinds", x.all.Total() / n},
					figure{"more of them", (x.all.Total() - plain.all.Total()) / n}, figure{"RSS at most, MB", mb(x.most)},
					figure{"more of it", mb(x.most) - mb(plain.most)})
				if who == noPolicy {
					return nil
				}
				return b.restoring(ctx, r, user, x)
			})
			if err == nil {
				err = load.Clean(ctx, b.plane.Config, p)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", who, err)
			}
		}
	}
	return nil
}

// undone is a tree that was deleted.
type undone struct {
	load.Result
	population *load.Population
	made       time.Duration
	json       int         // bytes of it
	all        load.Counts // requests about all kinds
	most       uint64      // bytes that the controller held
}

func (b *bench) undoingTree(ctx context.Context, user undoUser, who string) (x undone, err error) {
	layout := load.Tree(b.n)
	if who != noPolicy {
		layout.OwnerLabels = map[string]string{undoLabel: who}
	}
	began := time.Now()
	if x.population, err = load.Populate(ctx, b.plane.Config, layout); err != nil {
		return x, err
	}
	x.made = time.Since(began)
	client, err := kubernetes.NewForConfig(b.plane.Config)
	if err != nil {
		return x, err
	}
	list, err := client.CoreV1().RESTClient().Get().Namespace(x.population.Namespace).Resource("configmaps").DoRaw(ctx)
	if err != nil {
		return x, err
	}
	x.json = len(list)
	if err := load.Pause(ctx, digest); err != nil {
		return x, err
	}
	x.all, err = load.RequestsOf(ctx, b.plane.Metrics, func() error {
		_, x.most, err = load.Peak(user.weir.Controller(), func() error {
			x.Result, err = load.Cascade(ctx, user.Config, b.plane.Metrics, x.population, metav1.DeletePropagationBackground)
			return err
		})
		return err
	})
	return x, err
}

// restoring finds the tree of what was deleted, and has it restored as its user would.
func (b *bench) restoring(ctx context.Context, r *report, user undoUser, x undone) error {
	client, err := dynamic.NewForConfig(b.plane.Config)
	if err != nil {
		return err
	}
	trees := schema.GroupVersionResource{Group: "weir.dev", Version: "v1beta1", Resource: "deletedtrees"}
	list, err := client.Resource(trees).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	n, tree, sealed := len(x.population.Dependents)+1, "", int64(0)
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
	r.note("its archive", figure{"sealed, MB", mb(uint64(sealed))}, figure{"of its JSON", float64(sealed) / float64(x.json)})
	if b.plugin == "" {
		return nil
	}
	began := time.Now()
	all, err := load.RequestsOf(ctx, b.plane.Metrics, func() error {
		cmd := exec.CommandContext(ctx, b.plugin, "restore", tree, "--weir-namespace", metav1.NamespaceSystem,
			"--kubeconfig", user.kubeconfig, "--cache-dir", b.plane.Dir)
		out, err := cmd.CombinedOutput()
		if made := strings.Count(string(out), "restored "); err != nil || made != n {
			return fmt.Errorf("%d of %d objects were restored: %w; it ends with %q", made, n, err, out[max(0, len(out)-500):])
		}
		return nil
	})
	if err != nil {
		return err
	}
	took := time.Since(began)
	r.note("restored by kubectl weir", figure{"objects/s", float64(n) / took.Seconds()},
		figure{fmt.Sprintf("of %d plain creators", load.Clients), x.made.Seconds() / took.Seconds()},
		figure{"requests each", all.Total() / float64(n)}, figure{"took, s", took.Seconds()})
	return nil
}

// measureUndoNamespace has namespaces deleted that are full, archived and not.
func (b *bench) measureUndoNamespace(ctx context.Context, r *report) error {
	d := draining{namespaces: 1, configMaps: b.namespaceN}
	return b.whileArchiving(ctx, func(user undoUser) error {
		if _, err := b.undoingNamespace(ctx, user, draining{namespaces: 1}, noPolicy); err != nil { // until it drains
			return err
		}
		for range b.inTime(b.rounds) {
			plain := 0.0
			for _, who := range []string{noPolicy, archived} {
				x, err := b.undoingNamespace(ctx, user, d, who)
				if err != nil {
					return fmt.Errorf("%s: %w", who, err)
				}
				if who == noPolicy {
					plain = x.Rate()
				}
				r.note(who, figure{"objects", float64(x.Dependents)}, figure{"objects/s", x.Rate()}, figure{"of no policy", x.Rate() / plain},
					figure{"requests each", x.PerObject()}, figure{"took, s", x.Took.Seconds()})
			}
		}
		return nil
	})
}

func (b *bench) undoingNamespace(ctx context.Context, user undoUser, d draining, who string) (x load.Result, err error) {
	batch, err := b.furnish(ctx, d)
	if err != nil {
		return x, err
	}
	client, err := kubernetes.NewForConfig(b.plane.Config)
	if err != nil {
		return x, err
	}
	label := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, undoLabel, strings.ReplaceAll(who, " ", "-"))
	_, err = client.CoreV1().Namespaces().Patch(ctx, batch.Namespaces[0].Name, types.MergePatchType, label, metav1.PatchOptions{})
	if err == nil {
		err = load.Pause(ctx, digest)
	}
	if err != nil {
		return x, err
	}
	return load.Drain(ctx, user.Config, b.plane.Metrics, batch)
}
