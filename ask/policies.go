package ask

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/ask/snapshot"
	"github.com/weir-dev/weir/policies/v1beta1"
)

func policiesCommand() *cobra.Command {
	a := newAsking()
	var home string
	cmd := &cobra.Command{
		Use:   "policies",
		Short: "Show all policies of the cluster, those that are files, too, and what is wrong with them",
		Long: `Show all policies of the cluster: whether each is in force, whether the API server asks Weir
about it, and its last error. Those that are files of Weir's processes (--policy-dir) are in a
ConfigMap that the controller writes in its namespace; whoever may write ConfigMaps there could
change what is shown of them. The last error is of an Event.`,
		Example: `  kubectl weir policies
  kubectl weir policies -o yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.client()
			if err != nil {
				return err
			}
			r := policyReader{client: client, home: home, named: cmd.Flags().Changed("weir-namespace"),
				errOut: cmd.ErrOrStderr()}
			all, events, err := r.read(cmd.Context())
			if err != nil {
				return unanswered(err)
			}
			lines := insight.Policies(all, events)
			if done, err := a.print(cmd.OutOrStdout(), "Policies", map[string]any{"items": lines}); done {
				return err
			}
			return insight.DrawPolicies(cmd.OutOrStdout(), lines)
		},
	}
	a.register(cmd, "json", "yaml")
	cmd.Flags().StringVar(&home, "weir-namespace", "weir-system",
		"the namespace that Weir runs in, where it tells of policies that are files")
	return cmd
}

// policyReader reads policies, and reports what it could not read.
type policyReader struct {
	client dynamic.Interface
	home   string
	named  bool // home was set by a flag
	errOut io.Writer
}

func (r *policyReader) missed(what string, err error) {
	say(r.errOut, "incomplete: %s: %s", what, snapshot.ReasonOf(err))
}

func (r *policyReader) read(ctx context.Context) (all []v1beta1.FilePolicy, events []corev1.Event, err error) {
	for _, resource := range []string{"deletionpolicies", "ownerreferencepolicies", "drainpolicies"} {
		list, err := r.client.Resource(v1beta1.GroupVersion.WithResource(resource)).List(ctx, metav1.ListOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue // the CustomResourceDefinition is not installed
		case apierrors.IsForbidden(err):
			r.missed(resource, err)
			continue
		case err != nil:
			return nil, nil, err
		}
		for i := range list.Items {
			u := &list.Items[i]
			p := v1beta1.FilePolicy{Kind: u.GetKind(), Name: u.GetName()}
			p.Spec, _ = u.Object["spec"].(map[string]any)
			if status, ok := u.Object["status"].(map[string]any); ok {
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(status, &p.Status); err != nil {
					return nil, nil, fmt.Errorf("read the status of %s %s: %w", p.Kind, p.Name, err)
				}
			}
			all = append(all, p)
		}
	}
	files, err := snapshot.FilePolicies(ctx, r.client, r.home)
	if err != nil && (r.named || !apierrors.IsNotFound(err)) {
		r.missed("policies that are files (--weir-namespace says where to look)", err)
	}
	events, _, err = eventsOf(ctx, r.client, metav1.NamespaceDefault, "reason="+v1beta1.ReasonPolicyError, mostEvents)
	if err != nil {
		r.missed("last errors", err)
	}
	return append(all, files...), events, nil
}
