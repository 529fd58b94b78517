package ask

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/policies/v1beta1"
)

const confirmHelp = `Show what the delete of an object would do, as plan does, and confirm it: for exactly what would
be deleted now, where that is known. It changes annotations of the object, and nothing else.

A confirmation is yours, ends after the time that the policy says, and is used up by the delete.
Where a policy asks for a second person, somebody else has to delete the object.`

func confirmCommand() *cobra.Command {
	p := &planning{asking: newAsking()}
	yes := false
	cmd := &cobra.Command{
		Use:   "confirm (TYPE NAME | TYPE/NAME)",
		Short: "Show what a delete would do, and confirm it",
		Long:  confirmHelp,
		Example: `  kubectl weir confirm namespace shop
  kubectl weir confirm clusters.postgresql.cnpg.io main --yes`,
		RunE: func(cmd *cobra.Command, args []string) error { return p.confirm(cmd, args, yes) },
	}
	p.register(cmd, "json", "yaml")
	cmd.Flags().StringVar(&p.cascade, "cascade", "background", "how the delete is to go on with dependents: "+
		"background, foreground or orphan")
	cmd.Flags().BoolVar(&yes, "yes", false, "confirm without being asked")
	return cmd
}

// confirm shows the plan of a delete, asks, and writes the confirmation.
func (p *planning) confirm(cmd *cobra.Command, args []string, yes bool) error {
	propagation, err := propagationOf(p.cascade)
	if err != nil {
		return err
	}
	objects, err := p.objects(args)
	if err != nil {
		return err
	}
	if len(objects) != 1 {
		return errors.New("confirm one object at a time")
	}
	plan, err := p.plan(cmd.Context(), objects, propagation)
	if err != nil {
		return err
	}
	o := objects[0]
	value := confirmation(plan, string(whole(o).GetUID())) // before flags are appended to it
	plan.WithFlags(p.clusterFlags())
	if err := p.printPlan(cmd.OutOrStdout(), plan); err != nil {
		return err
	}
	if value == "" {
		return fmt.Errorf("%s: no policy asks to have its delete confirmed, or not all of them could be judged", infoOf(o))
	}
	if !yes && !agreed(cmd, "Confirm the delete of %s?", infoOf(o)) {
		return errors.New("not confirmed")
	}
	return p.writeConfirmation(cmd.Context(), o, value)
}

// agreed asks the user for a yes.
func agreed(cmd *cobra.Command, question string, args ...any) bool {
	say(cmd.ErrOrStderr(), question+" [y/N]", args...)
	answer, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n') // no answer is a no
	a := strings.ToLower(strings.TrimSpace(answer))
	return a == "y" || a == "yes"
}

// confirmation returns the value that confirms the delete of an object: for exactly what would also
// be deleted, if that is known. It is empty if no confirmation is asked for.
func confirmation(plan *insight.Plan, uid string) string {
	for _, v := range plan.Verdicts {
		_, value, exact := strings.Cut(v.Confirm, v1beta1.ConfirmDeleteAnnotation+"=")
		switch {
		case exact:
			return value
		case v.Refused && strings.Contains(v.Message, v1beta1.ConfirmDeleteAnnotation+"="+uid):
			return uid
		}
	}
	return ""
}

// writeConfirmation writes a confirmation, and checks that the webhook has recorded who confirmed.
// It removes an older record, so that the same confirmation can be given again.
func (a *asking) writeConfirmation(ctx context.Context, o *resource.Info, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         whole(o).GetUID(),
		"annotations": map[string]any{v1beta1.ConfirmDeleteAnnotation: value, v1beta1.ConfirmedAnnotation: nil},
	}})
	if err != nil {
		return fmt.Errorf("confirm the delete of %s: %w", infoOf(o), err)
	}
	client, err := a.client()
	if err != nil {
		return err
	}
	written, err := client.Resource(o.Mapping.Resource).Namespace(o.Namespace).Patch(ctx, o.Name,
		types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("confirm the delete of %s: %w", infoOf(o), err)
	}
	if written.GetAnnotations()[v1beta1.ConfirmedAnnotation] == "" {
		return fmt.Errorf("the confirmation of %s is written, and does not count: weir's webhook did not see it "+
			"being written. Confirm again when it answers (weir doctor says why it does not)", infoOf(o))
	}
	return nil
}
