package cmd

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
	// doctorFor bounds all reads together: there are dozens of rights to ask for, and the API
	// server may not answer.
	doctorFor = 2 * time.Minute
	// tryFor is how long a garbage collector may take to delete the object of --try.
	tryFor, tryEvery = 30 * time.Second, 200 * time.Millisecond
)

// patient is a cluster that the doctor looks at, and what it has found so far.
type patient struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	home    string
	mode    string // the mode of the installed controller
	facts   doctor.Facts
}

func newPatient(config *rest.Config, home string) (*patient, error) {
	config = rest.CopyConfig(config)
	config.Timeout, config.QPS, config.Burst = doctorTimeout, 50, 100
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

// read returns all facts. A fact that cannot be read is left out, and its error is noted.
func (p *patient) read(ctx context.Context, mode string, try bool) doctor.Facts {
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
	if f.Mode = mode; mode == "" {
		f.Mode = p.mode
	}
	if f.Flags != nil && f.Flags.MigrationLease != "" {
		namespace, name, _ := strings.Cut(f.Flags.MigrationLease, "/")
		p.note("migrationLease", p.lease(ctx, namespace, name, &f.MigrationLease))
	}
	p.note("version", p.version(ctx))
	p.note("managers", p.managers(ctx))
	p.note("managerLease", p.lease(ctx, metav1.NamespaceSystem, "kube-controller-manager", &f.ManagerLease))
	p.note("weirLease", p.lease(ctx, p.home, "weir-controller", &f.WeirLease))
	p.note("canary", p.canary(ctx))
	p.note("waiting", p.waiting(ctx))
	p.rights(ctx)
	p.note("webhooks", p.webhooks(ctx))
	if f.Webhooks != nil && len(*f.Webhooks) > 0 && f.Mode != doctor.Shadow {
		status, message := enforce.Asked(ctx, p.client.CoordinationV1().Leases(p.home))
		f.Asked = &doctor.Asked{Status: string(status), Says: message}
	}
	p.note("definitions", p.definitions(ctx))
	p.note("policies", p.policies(ctx))
	p.note("admission", p.admission(ctx))
}

func (p *patient) note(fact string, err error) {
	if err != nil {
		p.facts.Errors[fact] = err.Error()
	}
}

func (p *patient) version(ctx context.Context) error {
	v, err := serverVersion(ctx, p.client.Discovery().RESTClient())
	if err != nil {
		return err
	}
	p.facts.Server = v.GitVersion
	p.facts.Major, _ = strconv.Atoi(v.Major)
	p.facts.Minor = doctor.Minor(v.Minor)
	return nil
}

func (p *patient) lease(ctx context.Context, namespace, name string, into **doctor.Lease) error {
	l, err := p.client.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		*into = &doctor.Lease{}
		return nil
	case err != nil:
		return err
	}
	found := &doctor.Lease{}
	if l.Spec.HolderIdentity != nil {
		found.Holder = *l.Spec.HolderIdentity
	}
	if l.Spec.RenewTime != nil {
		found.Renewed = time.Since(l.Spec.RenewTime.Time)
	}
	if l.Spec.LeaseDurationSeconds != nil {
		const clocks = 30 * time.Second // the most that clocks differ by
		found.Expired = found.Renewed > time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second+clocks
	}
	*into = found
	return nil
}

func (p *patient) canary(ctx context.Context) error {
	cm, err := p.client.CoreV1().ConfigMaps(p.home).Get(ctx, v1beta1.CollectorCanary, metav1.GetOptions{})
	age := time.Duration(0)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return err
	case cm.DeletionTimestamp == nil && beside.IsGarbage(cm):
		age = time.Since(cm.CreationTimestamp.Time)
	}
	p.facts.Canary = &age
	return nil
}

// rights asks for the rights of the controller's ServiceAccount or, if there is none, of the user.
func (p *patient) rights(ctx context.Context) {
	_, err := p.client.CoreV1().ServiceAccounts(p.home).Get(ctx, "weir-controller", metav1.GetOptions{})
	installed := err == nil
	if installed {
		p.facts.RightsOf = "ServiceAccount " + p.home + "/weir-controller"
	}
	f := p.facts.Flags
	needs := doctor.Needs(p.facts.Mode, p.home, f == nil || !f.LeavesNamespaces)
	if f != nil && f.MigrationLease != "" && p.facts.Mode == doctor.Replace {
		needs = append(needs, doctor.LeaseNeeds(f.MigrationLease)...)
	}
	for _, need := range needs {
		right := doctor.Right{Need: need}
		if right.Allowed, err = p.may(ctx, need, installed); err != nil {
			right.Error = err.Error()
		}
		p.facts.Rights = append(p.facts.Rights, right)
	}
}

func (p *patient) may(ctx context.Context, need doctor.Need, installed bool) (bool, error) {
	resource, sub, _ := strings.Cut(need.Resource, "/")
	about := &authorizationv1.ResourceAttributes{Verb: need.Verb, Group: need.Group, Resource: resource, Subresource: sub,
		Namespace: need.Namespace, Name: need.Name}
	reviews := p.client.AuthorizationV1()
	if !installed {
		got, err := reviews.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: about}}, metav1.CreateOptions{})
		return err == nil && got.Status.Allowed, err
	}
	got, err := reviews.SubjectAccessReviews().Create(ctx,
		&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: p.facts.User, ResourceAttributes: about,
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + p.home, "system:authenticated"},
		}}, metav1.CreateOptions{})
	return err == nil && got.Status.Allowed, err
}

func (p *patient) webhooks(ctx context.Context) error {
	found := []string{}
	name := policies.WebhookConfigurations
	_, err := p.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		found = append(found, "validating "+name)
	} else if !apierrors.IsNotFound(err) {
		return err
	}
	_, err = p.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		found = append(found, "mutating "+name)
	} else if !apierrors.IsNotFound(err) {
		return err
	}
	p.facts.Webhooks = &found
	return nil
}

func (p *patient) definitions(ctx context.Context) error {
	found := []string{}
	var list metav1.APIResourceList
	err := p.client.Discovery().RESTClient().Get().AbsPath("/apis/" + v1beta1.GroupVersion.String()).Do(ctx).Into(&list)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err == nil {
		for _, r := range list.APIResources {
			found = append(found, r.Name)
		}
	}
	p.facts.Definitions = &found
	return nil
}

// policies reads all policy objects: which of their conditions are False, and which say nothing
// yet.
func (p *patient) policies(ctx context.Context) error {
	if p.facts.Definitions == nil {
		return fmt.Errorf("which kinds of them are served is not known")
	}
	found := []doctor.Policy{}
	for _, resource := range []string{"deletionpolicies", "ownerreferencepolicies", "drainpolicies"} {
		if !slices.Contains(*p.facts.Definitions, resource) {
			continue
		}
		list, err := p.dynamic.Resource(v1beta1.GroupVersion.WithResource(resource)).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			one, err := policyOf(&list.Items[i])
			if err != nil {
				return err
			}
			found = append(found, one)
		}
	}
	p.facts.Policies = &found
	return nil
}

func policyOf(u *unstructured.Unstructured) (doctor.Policy, error) {
	out := doctor.Policy{Name: u.GetKind() + "/" + u.GetName()}
	var of struct {
		Status v1beta1.PolicyStatus `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &of); err != nil {
		return out, fmt.Errorf("read the status of %s: %w", out.Name, err)
	}
	conditions, generation := of.Status.Conditions, u.GetGeneration()
	out.Unknown = notKnown(conditions, generation)
	for _, c := range conditions {
		if c.Type == v1beta1.ConditionReady {
			continue // a summary of the others
		}
		breaks := c.Type == v1beta1.ConditionValid || c.Type == v1beta1.ConditionEnforced
		if breaks && c.ObservedGeneration < generation {
			continue // it is about an older generation
		}
		if c.Status == metav1.ConditionFalse && c.Reason != v1beta1.ReasonInProgress && c.Type != v1beta1.ConditionInProcess {
			out.Bad = append(out.Bad, doctor.Bad{Type: c.Type, Reason: c.Reason, Message: c.Message, Breaks: breaks})
		}
	}
	return out, nil
}

// notKnown returns why the conditions of a policy do not tell whether it is in force; "" if they
// do.
func notKnown(conditions []metav1.Condition, generation int64) string {
	for _, of := range []string{v1beta1.ConditionValid, v1beta1.ConditionEnforced} {
		switch c := meta.FindStatusCondition(conditions, of); {
		case of == v1beta1.ConditionEnforced && (c == nil || c.ObservedGeneration < generation):
			return "no controller has found out yet whether it is enforced"
		case c == nil:
			return "no controller has looked at it"
		case c.ObservedGeneration < generation:
			return "no controller has looked at it since it was changed"
		case c.Status == metav1.ConditionFalse:
			return "" // it is known: not in force
		case c.Status != metav1.ConditionTrue:
			return fmt.Sprintf("%s is %s (%s): %s", of, c.Status, c.Reason, c.Message)
		}
	}
	return ""
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
		if err := p.remove(context.WithoutCancel(ctx), namespace, made.Name, made.UID); err != nil {
			return err
		}
	}
	if ctx.Err() == nil {
		p.facts.Tried = tried
	}
	return ctx.Err()
}

func (p *patient) remove(ctx context.Context, namespace, name string, uid types.UID) error {
	err := p.client.CoreV1().ConfigMaps(namespace).Delete(ctx, name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete ConfigMap %s/%s, which was made to see whether a garbage collector works: %w", namespace,
			name, err)
	}
	return nil
}
