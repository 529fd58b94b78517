package ask

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/archive/restore"
	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/ask/undo"
	"github.com/weir-dev/weir/controller/words"
)

const restoreHelp = `Make deleted objects again, with all that was deleted with them: in an order in which owners
come first, and with references to the owners as they are now. kubectl weir deleted lists the
trees that can be restored. It is done with your own rights: you need those to create each
object, and to read the archive's key.

  +  is made again
  ~  is made again without a reference to an owner that is gone, or is there and is changed
  !  gets a new, empty volume, or waits: for an object of its name that is being deleted
  ✗  is not made: you may not, another has its name, or its kind, version or namespace is missing
  ?  is not made: the object that has its name could not be read
  =  is there, or is left to what makes it: ReplicaSets, Pods, EndpointSlices, what has finished

A restore that was stopped is begun again with the same command, and does the rest. Objects of
others stay as they are, unless --replace is given.`

// restoring is the flags of restore.
type restoring struct {
	archived
	plan, diff, fresh, partial bool
	only                       []string
	options                    restore.Options
}

func restoreCommand() *cobra.Command {
	r := &restoring{archived: archived{asking: newAsking()}}
	cmd := &cobra.Command{
		Use:   "restore TREE",
		Short: "Make deleted objects again, with all that was deleted with them",
		Long:  restoreHelp,
		Example: `  kubectl weir restore web-5kq2x7wd --plan
  kubectl weir restore web-5kq2x7wd
  kubectl weir restore shop-x0f3k2ma --only secrets/shop/token --diff`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd, args[0]) },
	}
	r.register(cmd, "json", "yaml")
	r.registerArchive(cmd)
	f := cmd.Flags()
	f.BoolVar(&r.plan, "plan", false, "only show what would be done")
	f.BoolVar(&r.diff, "diff", false, "only show how objects would change, and what those are that cannot be made; of "+
		"Secrets no values")
	f.StringArrayVar(&r.only, "only", nil, "only this object, as KIND/NAME or KIND/NAMESPACE/NAME; may be given again")
	f.BoolVar(&r.options.Replace, "replace", false, "put objects in the place of others that have their names now")
	f.BoolVar(&r.options.Status, "status", false, "restore the status of custom resources, too")
	f.BoolVar(&r.fresh, "fresh-volumes", false, "go on although claims get new, empty volumes")
	f.BoolVar(&r.partial, "partial", false, "go on although you may not make all of it")
	cmd.MarkFlagsMutuallyExclusive("plan", "diff")
	return cmd
}

func (r *restoring) run(cmd *cobra.Command, tree string) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	client, err := r.client()
	if err != nil {
		return err
	}
	p, err := r.planOf(ctx, client, tree)
	if err != nil {
		return unanswered(err)
	}
	if r.diff {
		return drawDiffs(out, p)
	}
	if r.plan {
		if done, err := r.print(out, "Restore", map[string]any{"tree": p.Tree, "steps": p.Steps,
			"summary": insight.RestoreSummary(p)}); done {
			return err
		}
		return insight.DrawRestore(out, p, r.style(out))
	}
	if err := r.mayBegin(p); err != nil {
		return err
	}
	return r.do(cmd, client, p)
}

// planOf reads a tree and the live objects, and plans the restore.
func (r *restoring) planOf(ctx context.Context, client dynamic.Interface, tree string) (*restore.Plan, error) {
	store, err := r.store()
	if err != nil {
		return nil, err
	}
	if _, err := r.tree(ctx, store, tree); err != nil {
		return nil, err
	}
	var records []restore.Record
	for o, err := range store.Read(ctx, tree) {
		u := &unstructured.Unstructured{}
		if err == nil {
			err = u.UnmarshalJSON(o.Raw)
		}
		if apierrors.IsForbidden(err) {
			err = fmt.Errorf("%w; to restore, you need the right to get it", err)
		}
		if err != nil {
			return nil, fmt.Errorf("nothing was restored: %w", err)
		}
		records = append(records, restore.Record{Resource: o.Resource, Object: u})
	}
	if err := r.choose(records); err != nil {
		return nil, err
	}
	disco, err := r.flags.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	disco.Invalidate()
	w, err := undo.Read(ctx, client, disco, tree, records)
	if err != nil {
		return nil, err
	}
	p := restore.Make(w, r.options)
	undo.Refuse(ctx, client, p)
	return p, nil
}

// choose sets the options from --only. A name that the tree does not have is an error.
func (r *restoring) choose(records []restore.Record) error {
	wanted := map[restore.Ref]bool{}
	for _, name := range r.only {
		n := len(wanted)
		for _, record := range records {
			ref := restore.RefOf(record)
			kind, rest, _ := strings.Cut(name, "/")
			is := kind == ref.Kind.String() || kind == ref.Kind.Resource || strings.EqualFold(kind, record.Object.GetKind())
			if is && (rest == ref.Name || rest == ref.Namespace+"/"+ref.Name) {
				wanted[ref] = true
			}
		}
		if len(wanted) == n {
			return fmt.Errorf("--only %s: the tree has no other object of that name: --plan --full names all of its objects",
				name)
		}
	}
	if len(r.only) > 0 {
		r.options.Only = func(ref restore.Ref) bool { return wanted[ref] }
	}
	return nil
}

// mayBegin returns an error if the user has to agree to something first.
func (r *restoring) mayBegin(p *restore.Plan) error {
	var fresh, refused []string
	for _, s := range p.Acting() {
		if s.Fresh {
			fresh = append(fresh, s.Ref.String())
		}
		if s.Refused != "" {
			refused = append(refused, s.Ref.String())
		}
	}
	if len(refused) > 0 && !r.partial {
		return fmt.Errorf("nothing was restored: you may not make %s: have somebody restore it who may, or go on without "+
			"with --partial; --plan says why", insight.SomeOf(refused))
	}
	if len(fresh) > 0 && !r.fresh {
		return fmt.Errorf("nothing was restored: a new, empty volume would be made for %s: --plan says why, "+
			"--fresh-volumes goes on", insight.SomeOf(fresh))
	}
	return nil
}

var doing = map[restore.Outcome]string{
	restore.Create: "restored", restore.Replace: "replaced", restore.Patch: "completed", restore.Free: "freed",
}

// do carries out a plan, and reports the result of each step and what was left out.
func (r *restoring) do(cmd *cobra.Command, client dynamic.Interface, p *restore.Plan) error {
	out, errOut := cmd.OutOrStdout(), cmd.ErrOrStderr()
	for _, s := range p.Steps {
		if !s.Outcome.Acts() && s.Outcome != restore.There && s.Outcome != restore.Left {
			say(errOut, "not restored: %s: %s", words.Printable(s.Ref.String()), words.Printable(s.Why))
		}
	}
	failed := 0
	undo.Do(cmd.Context(), client, p, func(d undo.Done) {
		name := words.Printable(d.Step.Ref.String())
		if d.Err != nil {
			failed++
			say(errOut, "failed: %s: %s", name, words.Printable(d.Err.Error()))
			return
		}
		say(out, "%s %s", doing[d.Step.Outcome], name)
		for _, note := range append(d.Step.Dropped, d.Note) {
			if note != "" {
				say(errOut, "%s: %s", name, words.Printable(note))
			}
		}
	})
	if failed > 0 {
		return fmt.Errorf("%s failed, as told above: the same command does what is missing",
			words.Count(failed, "step", "steps"))
	}
	return nil
}

// drawDiffs shows for each object how it is now and how it would be. Objects that cannot be created
// are shown as they were.
func drawDiffs(out io.Writer, p *restore.Plan) error {
	for _, s := range p.Steps {
		if s.Object == nil || s.Outcome == restore.There || s.Outcome == restore.Left {
			continue
		}
		var now *unstructured.Unstructured
		if s.Live != nil {
			now = restore.Manifest(s.Ref.Kind, s.Live)
		}
		then := s.Object
		if !s.Outcome.Acts() {
			then = restore.Manifest(s.Ref.Kind, s.Object)
		}
		texts, err := maskedTexts(now, then)
		if err != nil {
			return err
		}
		text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
			A: slices.Collect(strings.Lines(texts[0])), FromFile: "now/" + s.Ref.String(),
			B: slices.Collect(strings.Lines(texts[1])), ToFile: string(s.Outcome) + "/" + s.Ref.String(), Context: 3})
		if err != nil {
			return err
		}
		for line := range strings.Lines(text) {
			say(out, "%s", words.Printable(strings.TrimRight(line, "\n")))
		}
	}
	return nil
}

// maskedTexts returns two objects as YAML. For Secrets, it only tells which values differ.
func maskedTexts(now, then *unstructured.Unstructured) (texts [2]string, err error) {
	both := [2]*unstructured.Unstructured{now, then}
	for n, o := range both {
		if o == nil {
			continue
		}
		o = o.DeepCopy()
		if o.GetKind() == "Secret" && o.GetAPIVersion() == "v1" {
			data, _, _ := unstructured.NestedMap(o.Object, "data")
			for key, value := range data {
				mask := "***"
				if other := both[1-n]; other != nil {
					if is, _, _ := unstructured.NestedString(other.Object, "data", key); is != value {
						mask = []string{"*** (now)", "*** (recorded)"}[n]
					}
				}
				data[key] = mask
			}
			o.Object["data"] = data
			unstructured.RemoveNestedField(o.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
		}
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return texts, err
		}
		texts[n] = string(text)
	}
	return texts, nil
}
