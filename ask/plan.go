package ask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// The exit codes of plan --exit-code.
const (
	exitStuck      = 2
	exitIncomplete = 3
)

// planning is the flags of plan.
type planning struct {
	*asking
	cascade     string
	exitCode    bool
	gracePeriod int64
	force       bool
}

// deletion returns what the flags ask for of each object.
func (p *planning) deletion() (d insight.Deletion, err error) {
	if d.Propagation, err = propagationOf(p.cascade); err != nil {
		return d, err
	}
	switch {
	case p.gracePeriod > 0 || p.gracePeriod == 0 && p.force:
		d.GracePeriodSeconds = &p.gracePeriod
	case p.gracePeriod == 0: // kubectl takes it for 1, too
		d.GracePeriodSeconds = new(int64(1))
	case p.force:
		d.GracePeriodSeconds = new(int64(0))
	}
	if p.force && p.gracePeriod > 0 {
		return d, errors.New("--force and a --grace-period of more than 0 cannot be given together")
	}
	return d, nil
}

const planHelp = `Show what a delete would do, before it is done: what is deleted and in what order, what is kept and why, what waits
for finalizers and who takes them off. Nothing is changed, and nothing has to be installed in the cluster: the objects are
listed with your own rights, and what you may not list is said to be unknown.

  ✗  may not be deleted: what a policy says, judged for you
  -  is deleted
  !  is deleted, and waits: for a finalizer that another component removes, or for ever
  ~  is kept, and loses its reference to an owner that goes
  ?  is kept because something about its owners cannot be determined

Where Weir's policies are in the cluster, and you may read them, they are judged as at the delete, by you.

What follows from finalizers is shown as if they came off in the end. Of a HeldCollection it is shown what would go if a person decided so.

Steps (-o wide) count what depends on what: objects
that do not depend on each other go in any order.`

func planCommand() *cobra.Command {
	p := &planning{asking: newAsking()}
	cmd := &cobra.Command{
		Use:   "plan (TYPE NAME... | TYPE/NAME... | -f FILE | -k DIR | TYPE -l SELECTOR | TYPE --all)",
		Short: "Show what a delete would do, before it is done",
		Long:  planHelp,
		Example: `  kubectl weir plan deployment web
  kubectl weir plan namespace shop --full
  kubectl weir plan held/widgets.example.com
  kubectl weir plan held/requested.deployments.apps
  kubectl weir plan -f manifests/ --cascade=foreground -o json`,
		RunE: p.run,
	}
	p.register(cmd, "wide", "json", "yaml", "name")
	p.registerObjects(cmd)
	p.goesOn = true
	cmd.Flags().Int64Var(&p.gracePeriod, "grace-period", -1, "how many seconds the objects have to stop, as "+
		"kubectl asks for it; -1: as they say themselves")
	cmd.Flags().BoolVar(&p.force, "force", false, "as kubectl asks for it: without time to stop")
	cmd.Flags().StringVar(&p.cascade, "cascade", "background", "how the delete is to go on with dependents: "+
		"background, foreground or orphan")
	cmd.Flags().BoolVar(&p.exitCode, "exit-code", false, "exit with 2 if something is refused, would be stuck or waits "+
		"for a finalizer, and with 3 if not everything could be read or judged")
	return cmd
}

// run makes a plan, and shows it.
func (p *planning) run(cmd *cobra.Command, args []string) error {
	d, err := p.deletion()
	if err != nil {
		return err
	}
	var plan *insight.Plan
	if name, ok := heldArg(args); ok {
		plan, err = p.planHeld(cmd.Context(), name)
	} else {
		var objects []*resource.Info
		if objects, err = p.objects(args); err != nil {
			return err
		}
		plan, err = p.plan(cmd.Context(), objects, d)
	}
	if err != nil {
		return err
	}
	for _, err := range p.missing {
		say(cmd.ErrOrStderr(), "not there, and not in the plan: %v", printableError{err})
	}
	p.details(cmd.Context(), plan)
	plan.WithFlags(p.clusterFlags())
	if err := p.printPlan(cmd.OutOrStdout(), plan); err != nil {
		return err
	}
	if p.output == "name" { // names alone would hide the caveats
		if _, err := io.WriteString(cmd.ErrOrStderr(), plan.Caveats(p.style(cmd.ErrOrStderr()))); err != nil {
			return err
		}
	}
	return p.code(cmd, plan)
}

// code ends the command with the exit code for a plan, if that is asked for.
func (p *planning) code(cmd *cobra.Command, plan *insight.Plan) error {
	switch t := plan.Totals(); {
	case p.exitCode && t.Refused+t.Stuck+t.Held+t.Braked > 0:
		return exit(cmd, exitStuck)
	case p.exitCode && plan.Incomplete():
		return exit(cmd, exitIncomplete)
	}
	return nil
}

// heldArg returns the name of the HeldCollection that the arguments mean, or false.
func heldArg(args []string) (name string, ok bool) {
	if len(args) == 1 {
		args = strings.SplitN(args[0], "/", 2)
	}
	if len(args) != 2 || args[1] == "" || !slices.Contains(
		[]string{"held", "heldcollection", "heldcollections", "heldcollections.weir.dev"}, args[0]) {
		return "", false
	}
	return args[1], true
}

// planHeld plans what is deleted if a person approves a HeldCollection. Its name says what it
// holds: garbage by the kind of its owners, or requested deletions of a kind.
func (a *asking) planHeld(ctx context.Context, name string) (*insight.Plan, error) {
	w, err := a.read(ctx, "")
	if err != nil {
		return nil, err
	}
	judge, err := a.policies(ctx, w)
	if err != nil {
		return nil, err
	}
	var d insight.Deletion
	judge.Rule(ctx, &d)
	of, requested := strings.CutPrefix(name, v1beta1.HeldRequested)
	kind := schema.ParseGroupResource(of)
	if requested {
		d.Roots, d.Decided = w.Limited(kind, d.Enforce), true
	} else {
		d.Roots, d.Garbage = w.Garbage(kind), true
	}
	if len(d.Roots) == 0 && !w.Serves(kind) {
		if err := a.isHeld(ctx, name); err != nil {
			return nil, err
		}
	}
	plan := w.Plan(d)
	plan.Held = name
	return plan, nil
}

// isHeld returns an error if there is no HeldCollection of the name: for a mistyped name, the
// answer must not be that nothing is deleted.
func (a *asking) isHeld(ctx context.Context, name string) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	_, err = client.Resource(heldKind).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("plan held/%s: there is no such HeldCollection, and no kind of that name: kubectl get held "+
			"lists what is held", name)
	}
	if err != nil {
		return fmt.Errorf("plan held/%s: there is no kind of that name, and whether there is a HeldCollection is not "+
			"known: %w", name, unanswered(err))
	}
	return nil
}

func propagationOf(cascade string) (metav1.DeletionPropagation, error) {
	propagation, ok := insight.Propagations[cascade]
	if !ok {
		return "", fmt.Errorf("--cascade %q: must be background, foreground or orphan", cascade)
	}
	return propagation, nil
}

// plan reads all that the plan of deletes needs, and makes it.
func (a *asking) plan(ctx context.Context, objects []*resource.Info, d insight.Deletion) (*insight.Plan, error) {
	if len(objects) == 0 {
		return &insight.Plan{Propagation: d.Propagation}, nil // a selector that selects nothing
	}
	w, err := a.read(ctx, scopeOf(objects))
	if err != nil {
		return nil, err
	}
	judge, err := a.policies(ctx, w)
	if err != nil {
		return nil, err
	}
	if judge != nil {
		judge.All = a.full
	}
	named := map[types.UID]bool{}
	for _, o := range objects {
		uid := whole(o).GetUID()
		if named[uid] {
			continue // it is named twice, and deleted once
		}
		named[uid] = true
		if _, ok := w.Graph.Find(uid); !ok {
			if uid, ok = w.Find(o.Mapping.Resource.GroupResource(), o.Namespace, o.Name); !ok {
				return nil, fmt.Errorf("plan the delete of %s: it is not among the objects that were listed: it is gone, "+
					"or its kind cannot be listed", infoOf(o))
			}
		}
		d.Roots = append(d.Roots, uid)
		if judge == nil {
			continue
		}
		verdict := judge.Judge(ctx, whole(o), o.Mapping.Resource,
			metav1.DeleteOptions{PropagationPolicy: &d.Propagation, GracePeriodSeconds: d.GracePeriodSeconds})
		verdict.Object = insight.Object{Kind: o.Mapping.Resource.GroupResource().String(), Namespace: o.Namespace,
			Name: o.Name, UID: uid}
		d.Verdicts = append(d.Verdicts, verdict)
	}
	judge.Rule(ctx, &d)
	return w.Plan(d), nil
}

// told returns a plan as fields of JSON.
func told(p *insight.Plan) map[string]any {
	out := map[string]any{
		"held": p.Held, "roots": p.Roots, "verdicts": p.Verdicts, "propagation": p.Propagation, "items": p.Items,
		"unread": p.Unread,
		"totals": p.Totals(), "summary": p.Summary(),
	}
	if p.GracePeriodSeconds != nil {
		out["gracePeriodSeconds"] = p.GracePeriodSeconds
	}
	return out
}

func (a *asking) printPlan(w io.Writer, p *insight.Plan) error {
	if done, err := a.print(w, "Plan", told(p)); done {
		return err
	}
	if a.output == "name" {
		var going []insight.Object
		for _, i := range p.Items {
			if i.Outcome == insight.Deleted || i.Outcome == insight.Stuck {
				going = append(going, i.Object)
			}
		}
		return printNames(w, going)
	}
	return p.Draw(w, a.style(w))
}
