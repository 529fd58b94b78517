//go:build stories

package stories

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// lingering is how long a worker takes to leave.
const lingering = 4 * time.Second

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 60
      containers:
      - {name: worker, image: WORKER, imagePullPolicy: IfNotPresent, env: [{name: LINGER, value: 4s}]}
`

// works starts a Deployment of two pods that take their time to leave, and waits for both and for
// Weir's finalizer.
func (s *story) works() []corev1.Pod {
	s.Helper()
	s.apply(deployment)
	s.must("rollout", "status", "deployment/web", "--timeout=60s")
	s.until("the Deployment is stamped", s.hasFinalizer("deployment", "web"))
	return s.pods()
}

func (s *story) hasFinalizer(kind, name string) func(context.Context) error {
	return func(context.Context) error {
		out, err := s.kubectl("get", kind, name, "-o", "jsonpath={.metadata.finalizers}")
		if err == nil && !strings.Contains(out, finalizer) {
			err = fmt.Errorf("%s %s has the finalizers %s", kind, name, out)
		}
		return err
	}
}

func (s *story) pods() []corev1.Pod {
	s.Helper()
	list, err := cluster.client.CoreV1().Pods(s.namespace).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return list.Items
}

// foregroundWaitsForContainers: kubectl delete, with its default flags, returns when the containers
// have ended.
func (s *story) foregroundWaitsForContainers() {
	s.weir()
	pods := s.works()
	if len(pods) != 2 {
		s.Fatalf("there are %d pods, want 2", len(pods))
	}
	ended := make(chan map[string]bool)
	w, err := cluster.client.CoreV1().Pods(s.namespace).Watch(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	defer w.Stop()
	go func() { ended <- containersEnded(w, len(pods)) }()

	started := time.Now()
	s.must("delete", "deployment", "web")
	took := time.Since(started)
	if left := s.pods(); len(left) != 0 {
		s.Errorf("kubectl delete returned with %d pods left, the first with status %+v", len(left), left[0].Status)
	}
	if took < lingering {
		s.Errorf("kubectl delete took %s, and containers take %s to leave", took, lingering)
	}
	select {
	case e := <-ended:
		for _, pod := range pods {
			if !e[pod.Name] {
				s.Errorf("pod %s was removed before its container had ended", pod.Name)
			}
		}
	case <-time.After(patience):
		s.Error("the pods were not seen to go")
	}
}

// containersEnded says of each of n pods, as they go, whether their containers had ended by then.
func containersEnded(w watch.Interface, n int) map[string]bool {
	out := map[string]bool{}
	for e := range w.ResultChan() {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok || e.Type != watch.Deleted {
			continue
		}
		out[pod.Name] = true
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Terminated == nil {
				out[pod.Name] = false
			}
		}
		if len(out) == n {
			break
		}
	}
	return out
}

// orphanedPodsRunOn: who asks for it keeps the pods, and the containers in them are not even
// restarted.
func (s *story) orphanedPodsRunOn() {
	s.weir()
	before := containers(s.works())
	s.must("delete", "deployment", "web", "--cascade=orphan")
	s.must("delete", "replicaset", "--all", "--cascade=orphan")
	s.until("the pods have no owner", s.said("", "get", "pods", "-o", "jsonpath={.items[*].metadata.ownerReferences}"))
	after := containers(s.pods())
	if len(before) != 2 || fmt.Sprint(before) != fmt.Sprint(after) {
		s.Errorf("containers before: %v, and after: %v", before, after)
	}
}

// containers are those that run, by pod.
func containers(pods []corev1.Pod) map[string]string {
	out := map[string]string{}
	for _, pod := range pods {
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Running != nil && pod.DeletionTimestamp == nil {
				out[pod.Name] = c.ContainerID
			}
		}
	}
	return out
}
