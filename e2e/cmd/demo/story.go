package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	background = metav1.DeletePropagationBackground
	foreground = metav1.DeletePropagationForeground
	orphan     = metav1.DeletePropagationOrphan
)

// tell plays the whole story. Every act checks what it claims.
func tell(ctx context.Context, c *cluster) error {
	if _, err := c.create(ctx, namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: demo}}"); err != nil {
		return err
	}
	acts := []struct {
		title string
		play  func(context.Context, *cluster) error
	}{
		{"A Deployment, its ReplicaSet and three pods, deleted in the background: each level goes when the one above it is gone", deploymentBackground},
		{"The same, foreground: the Deployment stays until its ReplicaSet is gone, and that until its pods are", deploymentForeground},
		{"The same, orphan: the Deployment goes, the ReplicaSet and the pods stay and run on", deploymentOrphan},
		{"A StatefulSet, foreground", statefulSet},
		{"A CronJob with two Jobs and their pods, in the background", cronJob},
		{"Custom resources that own ConfigMaps, in all three ways", customResources},
		{"A policy: Deployments are deleted foreground, whatever kubectl asks for", defaultForeground},
		{"Another: a namespace is not deleted while there is something in it", protectedNamespace},
		{"The brake: a definition goes with 600 instances; what they own is held until a person decides", uninstalled},
	}
	for i, act := range acts {
		fmt.Printf("\n── %d. %s\n", i+1, act.title)
		if err := act.play(ctx, c); err != nil {
			return fmt.Errorf("act %d: %w", i+1, err)
		}
	}
	return nil
}

// pod is a pod template for an app.
func pod(app, restart string) string {
	return fmt.Sprintf(`{metadata: {labels: {app: %s}}, spec: {restartPolicy: %s, terminationGracePeriodSeconds: 1, containers: [{name: app, image: app}]}}`, app, restart)
}

// deploy makes a Deployment with running pods, and returns the names that hang on it.
func deploy(ctx context.Context, c *cluster, name string) (replicaSet string, podNames []string, err error) {
	d, err := c.create(ctx, deployments, fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: demo}
spec: {replicas: 3, selector: {matchLabels: {app: %[1]s}}, template: %[2]s}`, name, pod(name, "Always")))
	if err != nil {
		return "", nil, err
	}
	if err := c.running(ctx, name, 3); err != nil {
		return "", nil, err
	}
	sets, err := c.owned(ctx, replicaSets, d)
	if err != nil || len(sets) != 1 {
		return "", nil, fmt.Errorf("ReplicaSets of %s: %v, %w", name, sets, err)
	}
	rs, err := c.in(replicaSets).Get(ctx, sets[0], metav1.GetOptions{})
	if err != nil {
		return "", nil, err
	}
	podNames, err = c.owned(ctx, pods, rs)
	fmt.Printf("  running: deployment %s ─ replicaset %s ─ pods %v\n", name, sets[0], podNames)
	return sets[0], podNames, err
}

func deploymentBackground(ctx context.Context, c *cluster) error {
	return deleteRoot(ctx, c, "web", background)
}
func deploymentForeground(ctx context.Context, c *cluster) error {
	return deleteRoot(ctx, c, "shop", foreground)
}

func deleteRoot(ctx context.Context, c *cluster, name string, policy metav1.DeletionPropagation) error {
	rs, podNames, err := deploy(ctx, c, name)
	if err != nil {
		return err
	}
	alsoDeleted := []object{{replicaSets, rs}}
	for _, p := range podNames {
		alsoDeleted = append(alsoDeleted, object{pods, p})
	}
	return c.delete(ctx, deployments, name, policy, alsoDeleted...)
}

func deploymentOrphan(ctx context.Context, c *cluster) error {
	rs, podNames, err := deploy(ctx, c, "keep")
	if err != nil {
		return err
	}
	if err := c.delete(ctx, deployments, "keep", orphan); err != nil {
		return err
	}
	set, err := c.in(replicaSets).Get(ctx, rs, metav1.GetOptions{})
	if err != nil || len(set.GetOwnerReferences()) != 0 {
		return fmt.Errorf("replicaset %s should be there without an owner: %w", rs, err)
	}
	if err := c.running(ctx, "keep", len(podNames)); err != nil {
		return err
	}
	fmt.Printf("  still there: replicaset %s without an owner, its pods running\n", rs)
	return nil
}

func statefulSet(ctx context.Context, c *cluster) error {
	s, err := c.create(ctx, statefulSets, `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: demo}
spec: {replicas: 2, serviceName: db, podManagementPolicy: Parallel, selector: {matchLabels: {app: db}}, template: `+pod("db", "Always")+"}")
	if err != nil {
		return err
	}
	if err := c.running(ctx, "db", 2); err != nil {
		return err
	}
	names, err := c.owned(ctx, pods, s)
	if err != nil {
		return err
	}
	fmt.Printf("  running: statefulset db ─ pods %v\n", names)
	return c.delete(ctx, statefulSets, "db", foreground, object{pods, "db-0"}, object{pods, "db-1"})
}

func cronJob(ctx context.Context, c *cluster) error {
	cj, err := c.create(ctx, cronJobs, `
apiVersion: batch/v1
kind: CronJob
metadata: {name: report, namespace: demo}
spec: {schedule: "0 0 1 1 *", jobTemplate: {spec: {template: `+pod("report", "Never")+"}}}")
	if err != nil {
		return err
	}
	alsoDeleted := []object{}
	for _, name := range []string{"report-monday", "report-tuesday"} { // as kubectl create job --from=cronjob/report does
		job, err := c.create(ctx, jobs, fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata:
  name: %s
  namespace: demo
  ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: report, uid: %s, controller: true}]
spec: {template: %s}`, name, cj.GetUID(), pod("report", "Never")))
		if err != nil {
			return err
		}
		alsoDeleted = append(alsoDeleted, object{jobs, job.GetName()})
	}
	if err := c.running(ctx, "report", 2); err != nil {
		return err
	}
	list, err := c.in(pods).List(ctx, metav1.ListOptions{LabelSelector: "app=report"})
	if err != nil {
		return err
	}
	for i := range list.Items {
		alsoDeleted = append(alsoDeleted, object{pods, list.Items[i].GetName()})
	}
	fmt.Println("  there: cronjob report ─ jobs report-monday, report-tuesday ─ a pod each")
	return c.delete(ctx, cronJobs, "report", background, alsoDeleted...)
}

func customResources(ctx context.Context, c *cluster) error {
	if err := defineWidgets(ctx, c); err != nil {
		return err
	}
	for _, policy := range []metav1.DeletionPropagation{background, foreground, orphan} {
		if err := widget(ctx, c, policy); err != nil {
			return err
		}
	}
	return nil
}

func defineWidgets(ctx context.Context, c *cluster) error {
	_, err := c.create(ctx, crds, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.demo.weir.dev}
spec:
  group: demo.weir.dev
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]`)
	if err != nil {
		return err
	}
	return until(ctx, "widgets are served", func(ctx context.Context) (bool, error) {
		_, err := c.in(widgets).List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
}

// widget makes a Widget that owns two ConfigMaps, and deletes it.
func widget(ctx context.Context, c *cluster, policy metav1.DeletionPropagation) error {
	name := map[metav1.DeletionPropagation]string{background: "red", foreground: "green", orphan: "blue"}[policy]
	w, err := c.create(ctx, widgets, fmt.Sprintf("{apiVersion: demo.weir.dev/v1, kind: Widget, metadata: {name: %s, namespace: demo}}", name))
	if err != nil {
		return err
	}
	var owned []object
	for _, part := range []string{"-settings", "-state"} {
		m, err := c.create(ctx, configMaps, fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: %s
  namespace: demo
  ownerReferences: [{apiVersion: demo.weir.dev/v1, kind: Widget, name: %s, uid: %s, blockOwnerDeletion: true}]`, name+part, name, w.GetUID()))
		if err != nil {
			return err
		}
		owned = append(owned, object{configMaps, m.GetName()})
	}
	fmt.Printf("\n  there: widget %s ─ configmaps %s-settings, %s-state\n", name, name, name)
	if policy != orphan {
		return c.delete(ctx, widgets, name, policy, owned...)
	}
	if err := c.delete(ctx, widgets, name, policy); err != nil {
		return err
	}
	for _, o := range owned {
		var m *unstructured.Unstructured
		if m, err = c.in(o.resource).Get(ctx, o.name, metav1.GetOptions{}); err != nil || len(m.GetOwnerReferences()) != 0 {
			return fmt.Errorf("configmap %s should be there without an owner: %w", o.name, err)
		}
	}
	fmt.Println("  still there: its configmaps, without an owner")
	return nil
}
