//go:build stories

package stories

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// uninstallWithHeldObjects: helm uninstall, with objects that carry Weir's finalizer and one whose
// deletion is being held, leaves no finalizer and no webhook behind, and nothing that cannot be
// deleted.
func (s *story) uninstallWithHeldObjects() {
	s.weir()
	s.keep("Ignore")
	const n = 50
	for i := range n {
		s.family(fmt.Sprintf("held-%d", i))
	}
	s.works()
	// A Deployment whose deletion waits for a pod that another's finalizer holds.
	pod := s.pods()[0].Name
	s.must("patch", "pod", pod, "--type=merge", "-p", `{"metadata":{"finalizers":["stories.weir.dev/held"]}}`)
	s.must("delete", "deployment", "web", "--wait=false")
	s.until("the pod is told to leave", func(ctx context.Context) error {
		p, err := cluster.client.CoreV1().Pods(s.namespace).Get(ctx, pod, metav1.GetOptions{})
		if err == nil && p.DeletionTimestamp == nil {
			err = errors.New("it is not")
		}
		return err
	})
	s.must("get", "deployment", "web")
	// A deletion that Weir holds and has not carried out, because its controller is away.
	s.must("-n", weirNamespace, "scale", "deployment/weir-controller", "--replicas=0")
	s.until("the controller is away", s.said("", "get", "pods", "-n", weirNamespace, "-l", "app.kubernetes.io/component=controller", "-o", "name"))
	s.must("delete", "configmap", "held-0", "--wait=false")
	if out := s.must("get", "configmap", "held-0", "-o", "jsonpath={.metadata.finalizers}"); !strings.Contains(out, finalizer) {
		s.Fatalf("what is being deleted has the finalizers %s", out)
	}
	// The namespace's kube-root-ca.crt may be one more.
	if held := s.held(); len(held) < n {
		s.Fatalf("there are %d objects with Weir's finalizer, want at least %d", len(held), n)
	}

	s.helm("uninstall", "weir", "--wait", "--timeout", "3m")
	release.installed = false
	if held := s.held(); len(held) > 0 {
		s.Errorf("%d objects still carry Weir's finalizer: %v", len(held), held[:min(5, len(held))])
	}
	for _, kind := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		if out := s.must("get", kind, "-o", "name"); strings.Contains(out, "/weir") {
			s.Errorf("helm uninstall left %s", out)
		}
	}
	s.until("no pod of Weir is left", s.said("", "get", "pods", "-n", weirNamespace, "-o", "name"))
	s.until("what Weir held is gone", s.said("", "get", "configmap", "held-0", "--ignore-not-found"))
	s.must("delete", "configmaps", "--all", "--timeout=60s")
	s.must("patch", "pod", pod, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	s.until("nothing of the Deployment is left", s.said("", "get", "deployments,replicasets,pods", "-o", "name"))
	// The policies outlive the chart; without it they do nothing.
	s.must("get", "delpol", "story-"+s.name)
}

// held are all objects of the cluster that carry Weir's finalizer.
func (s *story) held() []string {
	s.Helper()
	lists, err := cluster.client.Discovery().ServerPreferredResources()
	if err != nil {
		s.Fatal(err)
	}
	var out []string
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			s.Fatal(err)
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") {
				continue
			}
			found, err := cluster.dynamic.Resource(gv.WithResource(r.Name)).List(s.Context(), metav1.ListOptions{})
			if err != nil {
				s.Fatalf("list %s: %v", r.Name, err)
			}
			for _, o := range found.Items {
				if slices.Contains(o.GetFinalizers(), finalizer) {
					out = append(out, r.Name+"/"+o.GetNamespace()+"/"+o.GetName())
				}
			}
		}
	}
	return out
}
