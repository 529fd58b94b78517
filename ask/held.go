package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/policies/v1beta1"
)

const heldHelp = `Show what Weir holds until a person decides. With a name: why, and the plan of what is deleted
if it proceeds.

--proceed has it deleted. --discard keeps it: references to owners that are gone are removed,
and nothing is deleted. A decision is about what was held when this command began; what is found
later stays held. It is a patch of the HeldCollection, which the role weir-decider may do.`

// holding is the flags of held.
type holding struct {
	*planning
	proceed, discard, yes bool
}

func heldCommand() *cobra.Command {
	h := &holding{planning: &planning{asking: newAsking()}}
	cmd := &cobra.Command{
		Use:   "held [NAME]",
		Short: "Show what is held until a person decides, and decide",
		Long:  heldHelp,
		Example: `  kubectl weir held
  kubectl weir held widgets.example.com
  kubectl weir held widgets.example.com --discard`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 1:
				return h.one(cmd, args[0])
			case h.decision() != "":
				return errors.New("name the HeldCollection to decide about: kubectl weir held lists them")
			}
			return h.list(cmd)
		},
	}
	h.register(cmd, "json", "yaml")
	cmd.Flags().BoolVar(&h.proceed, "proceed", false, "have deleted what is held")
	cmd.Flags().BoolVar(&h.discard, "discard", false,
		"keep what is held, and remove its references to owners that are gone")
	cmd.Flags().BoolVar(&h.yes, "yes", false, "decide without being asked")
	cmd.MarkFlagsMutuallyExclusive("proceed", "discard")
	return cmd
}

// decision returns the decision that is asked for, or empty.
func (h *holding) decision() v1beta1.HeldDecision {
	switch {
	case h.proceed:
		return v1beta1.ProceedHeld
	case h.discard:
		return v1beta1.DiscardHeld
	}
	return ""
}

// list shows all that is held.
func (h *holding) list(cmd *cobra.Command) error {
	client, err := h.client()
	if err != nil {
		return err
	}
	list, err := client.Resource(heldKind).List(cmd.Context(), metav1.ListOptions{})
	if apierrors.IsNotFound(err) { // Weir is not installed
		list, err = &unstructured.UnstructuredList{}, nil
	}
	if err != nil {
		return unanswered(err)
	}
	all := make([]v1beta1.HeldCollection, len(list.Items))
	for i := range list.Items {
		if all[i], err = heldOf(&list.Items[i]); err != nil {
			return err
		}
	}
	if done, err := h.print(cmd.OutOrStdout(), "HeldCollections", map[string]any{"items": all}); done {
		return err
	}
	return insight.DrawHeld(cmd.OutOrStdout(), all, time.Now())
}

func heldOf(u *unstructured.Unstructured) (held v1beta1.HeldCollection, err error) {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &held); err != nil {
		return held, fmt.Errorf("read HeldCollection %s: %w", u.GetName(), err)
	}
	return held, nil
}

// one shows what a HeldCollection holds, and decides about it if that is asked for.
func (h *holding) one(cmd *cobra.Command, name string) error {
	client, err := h.client()
	if err != nil {
		return err
	}
	u, err := client.Resource(heldKind).Get(cmd.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("held %s: there is no such HeldCollection: kubectl weir held lists what is held", name)
	}
	if err != nil {
		return unanswered(err)
	}
	held, err := heldOf(u)
	if err != nil {
		return err
	}
	decision := h.decision()
	if why := undecidable(&held, decision); decision != "" && why != "" {
		return fmt.Errorf("held %s: %s", name, why)
	}
	plan, err := h.planHeld(cmd.Context(), name)
	if err != nil {
		return err
	}
	plan.WithFlags(h.clusterFlags())
	out := cmd.OutOrStdout()
	if h.output == "" {
		if err := insight.DrawHeld(out, []v1beta1.HeldCollection{held}, time.Now()); err != nil {
			return err
		}
	}
	if err := h.printPlan(out, plan); err != nil || decision == "" {
		return err
	}
	what := "Delete"
	if h.discard {
		what = "Keep, and release from owners that are gone,"
	}
	if !h.yes && !agreed(cmd, "%s what held/%s had under the digest %s?", what, name, held.Status.Digest) {
		return errors.New("not decided")
	}
	return h.decide(cmd.Context(), &held, decision)
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
	plan := w.Plan(d)
	plan.Held = name
	return plan, nil
}

// undecidable returns why a decision would have no effect; empty if it would have one.
func undecidable(held *v1beta1.HeldCollection, decision v1beta1.HeldDecision) string {
	switch {
	case held.Status.Digest == "":
		return "nothing waits for a decision"
	case decision == v1beta1.DiscardHeld && held.Status.Cause.Type == v1beta1.HeldForRequest:
		return "a deletion that was asked for cannot be taken back. To keep what depends on an object, " +
			"delete it again with --cascade=orphan"
	}
	return ""
}

// decide writes a decision about what was shown: the digest binds it to that.
func (h *holding) decide(ctx context.Context, held *v1beta1.HeldCollection, decision v1beta1.HeldDecision) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": held.UID},
		"spec":     v1beta1.HeldCollectionSpec{Decision: decision, Digest: held.Status.Digest},
	})
	if err != nil {
		return fmt.Errorf("decide about held/%s: %w", held.Name, err)
	}
	client, err := h.client()
	if err != nil {
		return err
	}
	_, err = client.Resource(heldKind).Patch(ctx, held.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("decide about held/%s: %w", held.Name, err)
	}
	return nil
}
