//go:build stories

package stories

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rollingRestart: while all of Weir is replaced, pod by pod, no request is refused and nothing is
// lost.
func (s *story) rollingRestart() {
	s.weir()
	s.keep("Ignore")
	st := s.stream()
	st.flowing(50)
	for _, d := range []string{"deployment/weir-webhook", "deployment/weir-controller"} {
		s.must("-n", weirNamespace, "rollout", "restart", d)
		s.must("-n", weirNamespace, "rollout", "status", d, "--timeout=2m")
	}
	st.flowing(50)
	st.unharmed()
}

// down takes the webhook away until the story's end, or until up.
func (s *story) down() (up func()) {
	s.Helper()
	webhook := []string{"-n", weirNamespace, "scale", "deployment/weir-webhook"}
	s.must(append(webhook, "--replicas=0")...)
	s.until("the webhook is gone", s.said("", "get", "pods", "-n", weirNamespace, "-l", "app.kubernetes.io/component=webhook", "-o", "name"))
	up = func() {
		ctx := context.WithoutCancel(s.Context())
		for _, args := range [][]string{append(webhook, "--replicas=2"), {"-n", weirNamespace, "rollout", "status", "deployment/weir-webhook", "--timeout=2m"}} {
			if out, err := kubectl(ctx, args...); err != nil {
				s.Errorf("kubectl %s: %s", strings.Join(args, " "), out)
			}
		}
	}
	s.Cleanup(up)
	return up
}

// webhookDownUnderIgnore: nothing is refused; what got the finalizer before is carried out as the
// policy says by the controller alone, and what is made meanwhile is as safe as the rest when the
// webhook is back.
func (s *story) webhookDownUnderIgnore() {
	s.weir()
	s.keep("Ignore")
	const n = 20
	var parents []string
	for i := range n {
		name := fmt.Sprintf("before-%d", i)
		s.family(name)
		parents = append(parents, name)
	}
	up := s.down()
	for _, p := range parents {
		if err := s.remove(s.Context(), p); err != nil {
			s.Errorf("refused while the webhook is down, under Ignore: %v", err)
		}
	}
	s.kept(parents)
	s.family("meanwhile")
	up()
	s.awaitFinalizers()
	// It has no finalizer yet. The first delete puts it there, and is answered that it is to come
	// again, which it does.
	s.until("what was made meanwhile is deleted", func(ctx context.Context) error { return s.remove(ctx, "meanwhile") })
	s.kept([]string{"meanwhile"})
}

// webhookDownUnderFail: what has the finalizer since it was created is deleted as the policy says,
// by the controller alone. The delete of what was created meanwhile is refused, with the webhook's
// name, until the webhook is back. Nothing else is refused.
func (s *story) webhookDownUnderFail() {
	s.weir()
	s.keep("Fail")
	s.family("before")
	s.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: other}\n")
	up := s.down()
	if err := s.remove(s.Context(), "before"); err != nil {
		s.Errorf("a delete of what has the finalizer, while the webhook is down: %v", err)
	}
	s.kept([]string{"before"})
	s.family("meanwhile")
	err := s.remove(s.Context(), "meanwhile")
	said := fmt.Sprint(err)
	if !strings.Contains(said, "failed calling webhook") || !strings.Contains(said, "weir-webhook."+weirNamespace+".svc") {
		s.Errorf("a delete of what has no finalizer, while the webhook is down under Fail: %v", err)
	}
	meanwhile, err := cluster.client.CoreV1().ConfigMaps(s.namespace).Get(s.Context(), "meanwhile", metav1.GetOptions{})
	if err != nil || meanwhile.DeletionTimestamp != nil {
		s.Errorf("what was refused is to be as it was: %v, %v", meanwhile, err)
	}
	s.must("delete", "secret", "other")
	up()
	s.until("the delete is accepted again", func(ctx context.Context) error { return s.remove(ctx, "meanwhile") })
	s.kept([]string{"meanwhile"})
}

// family makes a parent with a child.
func (s *story) family(name string) {
	s.Helper()
	parent, err := s.create(s.Context(), name, nil)
	if err == nil {
		_, err = s.create(s.Context(), name+"-child", parent)
	}
	if err != nil {
		s.Fatal(err)
	}
}
