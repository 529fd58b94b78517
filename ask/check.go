package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/weir-dev/weir/ask/insight"
)

// keepPlan writes a plan to a file.
func keepPlan(file string, p *insight.Plan) error {
	data, err := encode("Plan", told(p))
	if err == nil {
		err = os.WriteFile(file, append(data, '\n'), 0o600) // private: it names objects of the cluster
	}
	if err != nil {
		return fmt.Errorf("keep the plan: %w", err)
	}
	return nil
}

// keptPlan reads a file of keepPlan.
func keptPlan(file string) (*insight.Plan, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	var kept struct {
		metav1.TypeMeta
		insight.Plan
	}
	if err := json.Unmarshal(data, &kept); err != nil {
		return nil, fmt.Errorf("read the plan: %s is not what plan --out has written: %w", file, err)
	}
	if kept.APIVersion != askVersion || kept.Kind != "Plan" {
		return nil, fmt.Errorf("read the plan: %s is not what plan --out has written: it is of apiVersion %q and kind %q",
			file, kept.APIVersion, kept.Kind)
	}
	return &kept.Plan, nil
}

// runCheck makes a kept plan again, and shows what has changed.
func (p *planning) runCheck(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return errors.New("--check: the file says which objects are meant; name none")
	}
	kept, err := keptPlan(p.check)
	if err != nil {
		return err
	}
	plan, err := p.planAgain(cmd.Context(), kept)
	if err != nil {
		return err
	}
	p.details(cmd.Context(), plan)
	changes, out := plan.ChangesSince(kept), cmd.OutOrStdout()
	plan.WithFlags(p.clusterFlags())
	done, err := p.print(out, "PlanChanges", map[string]any{
		"changes": changes, "summary": plan.Summary(), "incomplete": plan.Incomplete(),
	})
	if !done && err == nil {
		err = insight.DrawChanges(out, changes, plan, p.style(out))
	}
	if err == nil && len(changes) > 0 && p.exitCode {
		return exit(cmd, exitChanged)
	}
	if err != nil {
		return err
	}
	return p.code(cmd, plan)
}

// planAgain plans the deletes of a kept plan for the objects that now have the names of its roots,
// as kubectl would delete them.
func (a *asking) planAgain(ctx context.Context, kept *insight.Plan) (*insight.Plan, error) {
	if kept.Held != "" {
		return a.planHeld(ctx, kept.Held)
	}
	var objects []*resource.Info
	for _, r := range kept.Roots {
		found, err := a.objectsIn(r.Namespace, false, []string{r.Kind + "/" + r.Name})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		objects = append(objects, found...)
	}
	return a.plan(ctx, objects, insight.Deletion{Propagation: kept.Propagation,
		GracePeriodSeconds: kept.GracePeriodSeconds})
}
