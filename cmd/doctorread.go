package cmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiversion "k8s.io/apimachinery/pkg/version"
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
	doctorTimeout = 15 * time.Second // for one request
	doctorFor     = 2 * time.Minute  // for all reads together: the API server may not answer
	// tryFor is how long a garbage collector may take to delete the object of --try.
	tryFor, tryEvery = 30 * time.Second, 200 * time.Millisecond
	// askFor is how long --webhook asks: an API server takes seconds to read webhook configurations,
	// and the controller as long to write them.
	askFor, askEvery = 30 * time.Second, time.Second
)

// patient is a cluster that the doctor looks at, and what it has found so far.
type patient struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	home    string
	facts   doctor.Facts
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
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &patient{client: client, dynamic: d, home: home, facts: doctor.Facts{
		User: "system:serviceaccount:" + home + ":weir-controller", Errors: map[string]string{}}}, nil
}

// read returns all facts. The error of a fact that cannot be read is noted.
func (p *patient) read(ctx context.Context, info *apiversion.Info, mode string, try bool) doctor.Facts {
	p.facts.Server = info.GitVersion
	p.facts.Major, _ = strconv.Atoi(info.Major)
	p.facts.Minor, _ = strconv.Atoi(strings.TrimRight(info.Minor, "+")) // which managed clusters append
	p.look(ctx, mode)
	if try {
		p.note("try", p.try(ctx))
	}
	return p.facts
}

// look reads all facts that need no change of the cluster, within doctorFor.
func (p *patient) look(ctx context.Context, mode string) {
	ctx, cancel := context.WithTimeout(ctx, doctorFor)
	defer cancel()
	f := &p.facts
	p.note("flags", p.deployed(ctx))
	if mode != "" {
		f.Mode = mode
	}
	p.note("managers", p.managers(ctx))
	p.note("managerLease", p.lease(ctx, metav1.NamespaceSystem, "kube-controller-manager", &f.ManagerLease))
	p.note("weirLease", p.lease(ctx, p.home, "weir-controller", &f.WeirLease))
	p.note("canary", p.canary(ctx))
	p.note("waiting", p.waiting(ctx))
	p.note("webhooks", p.webhooks(ctx))
	if len(f.Webhooks) > 0 {
		status, message := p.asks(ctx)
		f.Asked = &doctor.Asked{Status: string(status), Says: message}
	}
	p.note("admission", p.admission(ctx))
}

func (p *patient) note(fact string, err error) {
	if err != nil {
		p.facts.Errors[fact] = err.Error()
	}
}

// deployed reads the controller's Deployment: its mode, which is companion by default, and its
// flags about other collectors.
func (p *patient) deployed(ctx context.Context) error {
	p.facts.Mode = doctor.Companion
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
			p.facts.Mode = m
		}
		p.facts.LeavesNamespaces = p.facts.LeavesNamespaces || flagOf(args, "drain-namespaces") == "false"
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
func (p *patient) managers(ctx context.Context) error {
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
		p.facts.Managers = append(p.facts.Managers, m)
	}
	return nil
}

func (p *patient) lease(ctx context.Context, namespace, name string, into *doctor.Lease) error {
	l, err := p.client.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	if l.Spec.HolderIdentity != nil {
		into.Holder = *l.Spec.HolderIdentity
	}
	if l.Spec.RenewTime != nil {
		into.Renewed = time.Since(l.Spec.RenewTime.Time)
	}
	if l.Spec.LeaseDurationSeconds != nil {
		const clocks = 30 * time.Second // the most that clocks differ by
		into.Expired = into.Renewed > time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second+clocks
	}
	return nil
}

func (p *patient) canary(ctx context.Context) error {
	cm, err := p.client.CoreV1().ConfigMaps(p.home).Get(ctx, v1beta1.CollectorCanary, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return err
	case cm.DeletionTimestamp == nil && beside.IsGarbage(cm):
		p.facts.Canary = time.Since(cm.CreationTimestamp.Time)
	}
	return nil
}

// waiting finds the namespaces that no namespace controller has begun to empty.
func (p *patient) waiting(ctx context.Context) error {
	const begins = 30 * time.Second // at the latest: a controller that works waits 5 s (RB 7.7)
	list, err := p.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		ns := &list.Items[i]
		if ns.DeletionTimestamp == nil || isBegun(ns) {
			continue
		}
		if age := time.Since(ns.DeletionTimestamp.Time); age > begins {
			p.facts.Waiting = append(p.facts.Waiting, doctor.Waiting{Name: ns.Name, For: age})
		}
	}
	return nil
}

// ofNamespaceController are the conditions that only a namespace controller writes, while it
// empties a namespace.
var ofNamespaceController = []corev1.NamespaceConditionType{
	corev1.NamespaceDeletionDiscoveryFailure, corev1.NamespaceDeletionGVParsingFailure,
	corev1.NamespaceDeletionContentFailure,
	corev1.NamespaceContentRemaining, corev1.NamespaceFinalizersRemaining,
}

// isBegun reports whether a namespace controller has begun with a namespace that is being deleted.
// Its first pass writes conditions, and its last removes the finalizer.
func isBegun(ns *corev1.Namespace) bool {
	return !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) ||
		slices.ContainsFunc(ns.Status.Conditions, func(c corev1.NamespaceCondition) bool {
			return slices.Contains(ofNamespaceController, c.Type)
		})
}

func (p *patient) webhooks(ctx context.Context) error {
	for _, kind := range []string{"validating", "mutating"} {
		resource := admissionregistrationv1.SchemeGroupVersion.WithResource(kind + "webhookconfigurations")
		_, err := p.dynamic.Resource(resource).Get(ctx, policies.WebhookConfigurations, metav1.GetOptions{})
		switch {
		case err == nil:
			p.facts.Webhooks = append(p.facts.Webhooks, kind+" "+policies.WebhookConfigurations)
		case !apierrors.IsNotFound(err):
			return err
		}
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
	for began := time.Now(); ; {
		status, message := p.asks(ctx)
		if status == metav1.ConditionTrue {
			_, err := fmt.Fprintf(out, "ok  webhook  %s\n", message)
			return err
		}
		if time.Since(began) <= askFor {
			select {
			case <-ctx.Done():
			case <-time.After(askEvery):
				continue
			}
		}
		return fmt.Errorf("policies are not known to be enforced: %s", message)
	}
}

// try creates an object whose owner never existed, and waits until a collector deletes it.
func (p *patient) try(ctx context.Context) error {
	namespace := p.home
	if _, err := p.client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		namespace = metav1.NamespaceDefault // Weir is not installed yet
	}
	configs := p.client.CoreV1().ConfigMaps(namespace)
	made, err := configs.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		GenerateName:    "weir-doctor-",
		OwnerReferences: []metav1.OwnerReference{beside.Absent},
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create a ConfigMap in namespace %s: %w", namespace, err)
	}
	began := time.Now()
	tried := &doctor.Tried{}
	for !tried.Deleted && time.Since(began) < tryFor && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(tryEvery):
		}
		live, err := configs.Get(ctx, made.Name, metav1.GetOptions{})
		tried.Deleted = apierrors.IsNotFound(err) || err == nil && (live.UID != made.UID || live.DeletionTimestamp != nil)
	}
	tried.Took = time.Since(began)
	if !tried.Deleted {
		err := configs.Delete(context.WithoutCancel(ctx), made.Name,
			metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(made.UID))})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete ConfigMap %s/%s, which was made to see whether a garbage collector works: %w", namespace,
				made.Name, err)
		}
	}
	if ctx.Err() == nil {
		p.facts.Tried = tried
	}
	return ctx.Err()
}
