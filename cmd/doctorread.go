package cmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller/beside"
	"github.com/weir-dev/weir/controller/enforce"
	"github.com/weir-dev/weir/internal/tools/doctor"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

const (
	doctorTimeout = 15 * time.Second // for one request: the API server may not answer
	// askFor is how long --webhook asks: an API server takes seconds to read webhook configurations,
	// and the controller as long to write them.
	askFor, askEvery = 30 * time.Second, time.Second
)

// patient is a cluster that the doctor looks at.
type patient struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	home    string // Weir's namespace
}

func newPatient(config *rest.Config, home string) (*patient, error) {
	config = rest.CopyConfig(config)
	config.Timeout = doctorTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for admission policies: %w", err)
	}
	return &patient{client: client, dynamic: d, home: home}, nil
}

// read returns all facts. The error of a fact that cannot be read is noted. mode is asked about; ""
// stands for that of the controller's Deployment, and companion where there is none.
func (p *patient) read(ctx context.Context, mode string) doctor.Facts {
	f := doctor.Facts{Mode: doctor.Companion, Errors: map[string]string{},
		User: "system:serviceaccount:" + p.home + ":weir-controller"}
	for fact, read := range map[string]func(context.Context, *doctor.Facts) error{
		"flags": p.flags, "managers": p.managers, "canary": p.canary, "admission": p.admission,
	} {
		if err := read(ctx, &f); err != nil {
			f.Errors[fact] = err.Error()
		}
	}
	if mode != "" {
		f.Mode = mode
	}
	if f.Mode != doctor.Shadow {
		status, message := p.asks(ctx)
		f.Asked, f.AskedSays = string(status), message
	}
	return f
}

// flags reads the controller's Deployment: its mode, and its flags about other collectors.
func (p *patient) flags(ctx context.Context, f *doctor.Facts) error {
	d, err := p.client.AppsV1().Deployments(p.home).Get(ctx, "weir-controller", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		args := slices.Concat(c.Command, c.Args)
		if m := flagOf(args, "mode"); m == doctor.Replace || m == doctor.Shadow {
			f.Mode = m
		}
		f.LeavesNamespaces = f.LeavesNamespaces || flagOf(args, "drain-namespaces") == "false"
	}
	return nil
}

// flagOf returns the value of a flag in a command line; "" if it is not there. The values of a flag
// that is given more than once are joined by commas.
func flagOf(args []string, name string) string {
	var values []string
	for i, a := range args {
		if value, ok := strings.CutPrefix(a, "--"+name+"="); ok {
			values = append(values, value)
		} else if a == "--"+name && i+1 < len(args) {
			values = append(values, args[i+1])
		}
	}
	return strings.Join(values, ",")
}

// managers reads the pods of kube-controller-manager, by the labels that kubeadm and others give
// them.
func (p *patient) managers(ctx context.Context, f *doctor.Facts) error {
	pods, err := p.client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx,
		metav1.ListOptions{LabelSelector: "component=kube-controller-manager"})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		m := doctor.Manager{Name: pods.Items[i].Name, Controllers: "*"}
		for _, c := range pods.Items[i].Spec.Containers {
			args := slices.Concat(c.Command, c.Args)
			if value := flagOf(args, "controllers"); value != "" {
				m.Controllers = value
			}
		}
		f.Managers = append(f.Managers, m)
	}
	return nil
}

func (p *patient) canary(ctx context.Context, f *doctor.Facts) error {
	cm, err := p.client.CoreV1().ConfigMaps(p.home).Get(ctx, v1beta1.CollectorCanary, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return err
	case cm.DeletionTimestamp == nil && beside.IsGarbage(cm):
		f.Canary = time.Since(cm.CreationTimestamp.Time)
	}
	return nil
}

// asks returns whether the API server asks the webhook. It needs one right: to delete the Lease
// weir-canary.
func (p *patient) asks(ctx context.Context) (metav1.ConditionStatus, string) {
	return enforce.Asked(ctx, p.client.CoordinationV1().Leases(p.home))
}

// printAsked retries until the API server asks the webhook, or the time is up. It fails if not.
func (p *patient) printAsked(ctx context.Context, out io.Writer) error {
	message := ""
	err := wait.PollUntilContextTimeout(ctx, askEvery, askFor, true, func(context.Context) (bool, error) {
		status, says := p.asks(ctx)
		message = says
		return status == metav1.ConditionTrue, nil
	})
	if err != nil {
		return fmt.Errorf("policies are not known to be enforced: %s", message)
	}
	_, err = fmt.Fprintf(out, "ok  webhook  %s\n", message)
	return err
}

// admission finds the admission policies and webhooks of others that let the cluster's own
// collectors through by name.
func (p *patient) admission(ctx context.Context, f *doctor.Facts) error {
	for _, resource := range []string{"validatingadmissionpolicies", "mutatingadmissionpolicies",
		"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		kind := admissionregistrationv1.SchemeGroupVersion.WithResource(resource)
		list, err := p.dynamic.Resource(kind).List(ctx, metav1.ListOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue // older API servers do not serve the kind
		case err != nil:
			return err
		}
		for i := range list.Items {
			u := &list.Items[i]
			names := doctor.LetsThrough(conditionsOf(u), f.User)
			_, ours := u.GetLabels()[v1beta1.InProcessLabel]
			if names != "" && u.GetName() != policies.WebhookConfigurations && !ours {
				f.Admission = append(f.Admission, doctor.Admission{Name: u.GetKind() + "/" + u.GetName(), Names: names})
			}
		}
	}
	return nil
}

// conditionsOf returns the expressions by which an admission policy, or each webhook of a
// configuration, selects deletes and updates, the requests of collectors.
func conditionsOf(u *unstructured.Unstructured) (out []string) {
	parts, _, _ := unstructured.NestedSlice(u.Object, "webhooks")
	for _, part := range append(parts, u.Object["spec"]) {
		if slices.ContainsFunc(under(part, "operations", false), func(o string) bool {
			return o == "*" || o == string(admissionregistrationv1.Delete) || o == string(admissionregistrationv1.Update)
		}) {
			out = append(out, under(part, "expression", false)...)
		}
	}
	return out
}

// under returns the strings below a key, at any depth. With here, at is already below the key.
func under(at any, key string, here bool) (out []string) {
	switch at := at.(type) {
	case string:
		if here {
			out = append(out, at)
		}
	case []any:
		for _, v := range at {
			out = append(out, under(v, key, here)...)
		}
	case map[string]any:
		for k, v := range at {
			out = append(out, under(v, key, k == key)...)
		}
	}
	return out
}
