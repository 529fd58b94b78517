//go:build stories

package stories

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const coldStart = "cold-start"

// Policies about everything, without a selector: of what is deleted, and of what says whom it
// belongs to.
const (
	deletesOfEverything = `  failurePolicy: Fail
  match:
    resources: [{apiGroups: ["*"], resources: ["*"]}]
  propagation: {default: Foreground, allowed: [Foreground]}
`
	ownersOfEverything = `  failurePolicy: Fail
  match: {resources: [{apiGroups: ["*"], resources: ["*"]}], kubernetesControllers: Judge}
  rules: {unservedVersion: Deny}
`
	// mistaken has an owner of a version that the cluster does not serve.
	mistaken = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mistaken, ownerReferences: " +
		"[{apiVersion: apps/v0, kind: Deployment, name: none, uid: 00000000-0000-4000-8000-000000000000}]}\n"
)

// coldStart: the only node is lost with all that runs on it, Weir too, while policies about
// everything say Fail; then there is an empty one. Kubernetes' own controllers bring everything
// back, and what the policies are about is refused all the time.
func (s *story) coldStart() {
	s.weir()
	s.policy("DeletionPolicy", deletesOfEverything)
	s.policy("OwnerReferencePolicy", ownersOfEverything)
	s.works()
	s.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: guarded}\n")
	s.until("users are refused by the policies", s.refusedByPolicies)
	// What it adds the finalizer to is counted when it has been everywhere.
	s.must("wait", "--for=jsonpath={.status.withFinalizer}", "deletionpolicy/story-"+s.name, "--timeout=2m")
	old := s.everyPod()

	lost := time.Now()
	s.loseNode()
	s.until("users are refused because nobody answers", s.refusedWithoutWebhook)
	s.until("the Node is gone", s.said("", "get", "nodes", "-o", "name"))
	s.until("the pods are gone", s.noneOf(old))
	collected := time.Since(lost)
	s.until("Weir's new pods want a node", s.said("Pending Pending Pending Pending", "get", "pods", "-n", weirNamespace, "-o", "jsonpath={.items[*].status.phase}"))
	s.until("the workload has to wait for Weir", func(context.Context) error {
		out, err := s.kubectl("get", "replicasets", "-o", `jsonpath={.items[0].status.conditions[?(@.type=="ReplicaFailure")].message}`)
		if err == nil && !strings.Contains(out, noAnswer) {
			err = fmt.Errorf("the ReplicaSet says %q", out)
		}
		return err
	})
	s.until("users are still refused because nobody answers", s.refusedWithoutWebhook)

	if err := cluster.machine.Replace(s.Context()); err != nil {
		s.Fatal(err)
	}
	for _, d := range []string{"weir-webhook", "weir-controller"} {
		s.must("-n", weirNamespace, "rollout", "status", "deployment/"+d, "--timeout=2m")
	}
	s.until("users are refused by the policies again", s.refusedByPolicies)
	up := time.Since(lost)
	s.until("the workload runs", func(context.Context) error {
		if n := len(containers(s.pods())); n != 2 {
			return fmt.Errorf("%d of its pods do", n)
		}
		return nil
	})
	s.Logf("after the node was lost, its pods were gone in %.0f s, Weir was back in %.0f s, and the workload in %.0f s",
		collected.Seconds(), up.Seconds(), time.Since(lost).Seconds())
	s.enforced("deletionpolicy")
	s.enforced("ownerreferencepolicy")
	s.must("delete", "configmap", "guarded", "--timeout=60s")
}

// loseNode also sees to it that stories after this one have a node, whatever becomes of this one.
func (s *story) loseNode() {
	s.Helper()
	s.Cleanup(func() {
		if err := cluster.machine.Replace(context.WithoutCancel(s.Context())); err != nil {
			s.Error(err)
		}
	})
	if err := cluster.machine.Lose(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// everyPod are the pods of the cluster.
func (s *story) everyPod() map[types.UID]string {
	s.Helper()
	list, err := cluster.client.CoreV1().Pods("").List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	out := map[types.UID]string{}
	for _, p := range list.Items {
		out[p.UID] = p.Namespace + "/" + p.Name
	}
	return out
}

func (s *story) noneOf(old map[types.UID]string) func(context.Context) error {
	return func(ctx context.Context) error {
		list, err := cluster.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, p := range list.Items {
			if name := old[p.UID]; name != "" {
				return fmt.Errorf("%s is still there", name)
			}
		}
		return nil
	}
}

// refusedByPolicies: Weir answers, and each policy refuses what it does not allow, and nothing
// else.
func (s *story) refusedByPolicies(context.Context) error {
	file := s.file(mistaken)
	return errors.Join(
		// By the API server itself, or by Weir: in the same words.
		s.says("may not be deleted with propagation policy Orphan: allowed is Foreground", "delete", "configmap", "guarded", "--cascade=orphan", "--dry-run=server"),
		s.says(`OwnerReferencePolicy "story-`+s.name+`"`, "create", "--dry-run=server", "-f", file),
		s.says("", "delete", "configmap", "guarded", "--dry-run=server"),
	)
}

// noAnswer is what the API server says of a webhook that it cannot call.
const noAnswer = "failed calling webhook"

// refusedWithoutWebhook: the API server does not get an answer from Weir, and refuses by itself
// whatever the policies are about.
func (s *story) refusedWithoutWebhook(context.Context) error {
	file := s.file(mistaken)
	return errors.Join(
		s.says(noAnswer+` "fail.delete.weir.dev"`, "delete", "configmap", "guarded"),
		s.says(noAnswer+` "fail.owners.weir.dev"`, "create", "--dry-run=server", "-f", file),
	)
}

// says is an objection unless kubectl is refused with these words; without words, if it is.
func (s *story) says(words string, args ...string) error {
	out, err := s.kubectl(args...)
	if refused := err != nil; refused != (words != "") || !strings.Contains(out, words) {
		return fmt.Errorf("kubectl %s says %q", strings.Join(args, " "), out)
	}
	return nil
}

// enforced waits until Weir says that a policy is. What it said before it was gone is still there:
// so the policy is changed, and it has to be said of the policy as it is now.
func (s *story) enforced(kind string) {
	s.Helper()
	s.must("patch", kind, "story-"+s.name, "--type=merge", "-p", `{"spec":{"validationActions":["Deny","Audit"]}}`)
	generation := s.must("get", kind, "story-"+s.name, "-o", "jsonpath={.metadata.generation}")
	const condition = `.status.conditions[?(@.type=="Enforced")]`
	s.until("the policy is enforced", s.said(generation+" True", "get", kind, "story-"+s.name, "-o", "jsonpath={"+condition+".observedGeneration} {"+condition+".status}"))
}
