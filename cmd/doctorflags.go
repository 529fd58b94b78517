package cmd

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/tools/doctor"
	"github.com/weir-dev/weir/policies"
)

// deployed reads the controller's Deployment: its mode, which is companion by default, and its
// flags about other collectors.
func (p *patient) deployed(ctx context.Context) error {
	p.mode = doctor.Companion
	d, err := p.client.AppsV1().Deployments(p.home).Get(ctx, "weir-controller", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	p.facts.Flags = &doctor.Flags{}
	if err == nil {
		p.mode, *p.facts.Flags = flagsOf(d)
	}
	return nil
}

func flagsOf(d *appsv1.Deployment) (mode string, flags doctor.Flags) {
	mode = doctor.Companion
	for _, c := range d.Spec.Template.Spec.Containers {
		args := slices.Concat(c.Command, c.Args)
		if m, ok := flagOf(args, "mode"); ok && (m == doctor.Replace || m == doctor.Shadow) {
			mode = m
		}
		if lease, ok := flagOf(args, "migration-lease"); ok {
			flags.MigrationLease = lease
		}
		if drains, _ := flagOf(args, "drain-namespaces"); drains == "false" {
			flags.LeavesNamespaces = true
		}
		if users, _ := flagOf(args, "brake-users"); users != "" {
			flags.BrakeUsers = strings.Split(users, ",")
		}
	}
	return mode, flags
}

// flagOf returns the value of a flag in a command line, and whether it is there. The values of a
// flag that is given more than once are joined by commas.
func flagOf(args []string, name string) (string, bool) {
	var values []string
	for i, a := range args {
		if value, ok := strings.CutPrefix(a, "--"+name+"="); ok {
			values = append(values, value)
		} else if a == "--"+name && i+1 < len(args) {
			values = append(values, args[i+1])
		}
	}
	return strings.Join(values, ","), len(values) > 0
}

// managers reads the pods of kube-controller-manager, by the labels that kubeadm and others give
// them.
func (p *patient) managers(ctx context.Context) error {
	pods, err := p.client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx,
		metav1.ListOptions{LabelSelector: "component=kube-controller-manager"})
	if err != nil {
		return err
	}
	found := []doctor.Manager{}
	for i := range pods.Items {
		m := doctor.Manager{Name: pods.Items[i].Name, Controllers: "*", User: allControllers}
		for _, c := range pods.Items[i].Spec.Containers {
			if value, ok := flagOf(slices.Concat(c.Command, c.Args), "controllers"); ok {
				m.Controllers = value
			}
			if own(slices.Concat(c.Command, c.Args)) {
				m.User = policies.GarbageCollector
			}
		}
		found = append(found, m)
	}
	p.facts.Managers = &found
	return nil
}

// own reports whether the controllers of a kube-controller-manager have credentials of their own.
func own(args []string) bool {
	const flag = "--use-service-account-credentials"
	value, _ := flagOf(args, strings.TrimPrefix(flag, "--"))
	return value == "true" || slices.Contains(args, flag)
}
