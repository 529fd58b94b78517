package ask

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/ask/snapshot"
)

// The exit codes of plan --exit-code.
const (
	exitStuck      = 2
	exitIncomplete = 3
)

// planning is the flags of plan.
type planning struct {
	*asking
	cascade  string
	exitCode bool
}

const planHelp = `Show what a delete would do, before it is done: what is deleted and in what order, what is kept
and why, what waits for finalizers and who takes them off. Nothing is changed, and nothing has
to be installed in the cluster: the objects are listed with your own rights, and what you may
not list is said to be unknown.

  ✗  may not be deleted: what a policy says, judged for you
  -  is deleted
  !  is deleted, and waits: for a finalizer that another component removes, or for ever
  ~  is kept, and loses its reference to an owner that goes
  ?  is kept because something about its owners cannot be determined

Where Weir's policies are in the cluster, and you may read them, they are judged as at the
delete, by you.

What follows from finalizers is shown as if they came off in the end.

Steps (--full) count what depends on what: objects
that do not depend on each other go in any order.`

func planCommand() *cobra.Command {
	p := &planning{asking: newAsking()}
	cmd := &cobra.Command{
		Use:   "plan (TYPE NAME... | TYPE/NAME... | -f FILE | -k DIR | TYPE -l SELECTOR | TYPE --all)",
		Short: "Show what a delete would do, before it is done",
		Long:  planHelp,
		Example: `  kubectl weir plan deployment web
  kubectl weir plan namespace shop --full
  kubectl weir plan -f manifests/ --cascade=foreground -o json`,
		RunE: p.run,
	}
	p.register(cmd, "json", "yaml", "lines")
	p.registerObjects(cmd)
	p.goesOn = true
	cmd.Flags().StringVar(&p.cascade, "cascade", "background", "how the delete is to go on with dependents: "+
		"background, foreground or orphan")
	cmd.Flags().BoolVar(&p.exitCode, "exit-code", false, "exit with 2 if something is refused, would be stuck or waits "+
		"for a finalizer, and with 3 if not everything could be read or judged")
	return cmd
}

// run makes a plan, and shows it.
func (p *planning) run(cmd *cobra.Command, args []string) error {
	propagation, err := propagationOf(p.cascade)
	if err != nil {
		return err
	}
	objects, err := p.objects(args)
	if err != nil {
		return err
	}
	plan, err := p.plan(cmd.Context(), objects, propagation)
	if err != nil {
		return err
	}
	for _, err := range p.missing {
		say(cmd.ErrOrStderr(), "not there, and not in the plan: %v", printableError{err})
	}
	p.volumes(cmd.Context(), plan)
	plan.WithFlags(p.clusterFlags())
	if err := p.printPlan(cmd.OutOrStdout(), plan); err != nil {
		return err
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

func propagationOf(cascade string) (metav1.DeletionPropagation, error) {
	propagation, ok := insight.Propagations[cascade]
	if !ok {
		return "", fmt.Errorf("--cascade %q: must be background, foreground or orphan", cascade)
	}
	return propagation, nil
}

// plan reads all that the plan of deletes needs, and makes it.
func (a *asking) plan(
	ctx context.Context, objects []*resource.Info, propagation metav1.DeletionPropagation,
) (*insight.Plan, error) {
	d := insight.Deletion{Propagation: propagation}
	if len(objects) == 0 {
		return &insight.Plan{Propagation: propagation}, nil // a selector that selects nothing
	}
	w, err := a.read(ctx, scopeOf(objects))
	if err != nil {
		return nil, err
	}
	judge, err := a.policies(ctx, w)
	if err != nil {
		return nil, err
	}
	named := map[types.UID]bool{}
	for _, o := range objects {
		uid := whole(o).GetUID()
		if named[uid] {
			continue // it is named twice, and deleted once
		}
		named[uid] = true
		object := insight.Object{Kind: o.Mapping.Resource.GroupResource().String(), Namespace: o.Namespace, Name: o.Name}
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
		verdict := judge.Judge(ctx, whole(o), o.Mapping.Resource, propagation)
		verdict.Object, verdict.Object.UID = object, uid
		d.Verdicts = append(d.Verdicts, verdict)
	}
	judge.Rule(ctx, &d)
	return w.Plan(d), nil
}

// mostPageLines bounds the lines of a plan on the page.
const mostPageLines = 500

func (a *asking) printPlan(w io.Writer, p *insight.Plan) error {
	if done, err := a.print(w, "Plan", map[string]any{"held": p.Held, "roots": p.Roots, "verdicts": p.Verdicts,
		"propagation": p.Propagation, "items": p.Items, "unread": p.Unread, "totals": p.Totals(), "summary": p.Summary(),
	}); done {
		return err
	}
	if a.output == "lines" { // for the page
		data, err := encode("PlanLines", map[string]any{"verdicts": p.Verdicts, "unread": p.Unread,
			"summary": p.Summary(), "lines": p.Lines(a.style(w), mostPageLines)})
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	}
	return p.Draw(w, a.style(w))
}

// mostVolumes bounds the volumes that are read to tell what becomes of those of claims.
const mostVolumes = 5000

// volumes adds to a plan what becomes of volumes. What cannot be read, the plan says is not known.
func (a *asking) volumes(ctx context.Context, p *insight.Plan) {
	client, err := a.client()
	if err != nil || !p.Claims() {
		return
	}
	list, err := client.Resource(volumeKind).List(ctx, metav1.ListOptions{Limit: mostVolumes})
	switch {
	case err != nil:
		p.Volumes(nil, snapshot.ReasonOf(err))
	case list.GetContinue() != "":
		p.Volumes(list.Items, fmt.Sprintf("there are more than %d volumes", mostVolumes))
	default:
		p.Volumes(list.Items, "")
	}
}
