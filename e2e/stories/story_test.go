//go:build stories

package stories

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// patience is for what takes seconds when the machine has nothing else to do.
	patience  = 2 * time.Minute
	pollEvery = 200 * time.Millisecond
)

// story is one of them, in a namespace of its own, which has the label story with its name.
type story struct {
	*testing.T
	name, namespace string
}

func begin(t *testing.T, name string) *story {
	t.Helper()
	s := &story{T: t, name: name, namespace: "story-" + name}
	started := time.Now()
	t.Cleanup(func() { t.Logf("took %.0f s", time.Since(started).Seconds()) })
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace, Labels: map[string]string{"story": name}}}
	if _, err := cluster.client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	return s
}

// end removes the namespace, for which the shipped protection wants a confirmation.
func (s *story) end() {
	if s.Failed() {
		s.explain()
	}
	ctx := context.WithoutCancel(s.Context())
	if err := s.confirmed(ctx); err != nil {
		s.Errorf("remove the namespace: %v", err)
	}
}

func (s *story) confirmed(ctx context.Context) error {
	namespaces := cluster.client.CoreV1().Namespaces()
	ns, err := namespaces.Get(ctx, s.namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, args := range [][]string{
		{"annotate", "namespace", s.namespace, "--overwrite", "weir.dev/confirm-delete=" + string(ns.UID)},
		{"delete", "namespace", s.namespace, "--timeout=90s"},
	} {
		if out, err := kubectl(ctx, args...); err != nil {
			return errors.New(out)
		}
	}
	return nil
}

// explain shows what there is to see of Weir when something went wrong.
func (s *story) explain() {
	ctx := context.WithoutCancel(s.Context())
	for _, args := range [][]string{
		{"get", "pods", "-A", "-o", "wide"},
		{"get", "all,configmaps", "-n", s.namespace, "--show-labels"},
		{"get", "events", "-n", s.namespace, "--sort-by=.lastTimestamp"},
		{"get", "events", "-n", weirNamespace, "--sort-by=.lastTimestamp"},
		{"get", "delpol,ownpol,drainpol"},
		{"logs", "-n", weirNamespace, "-l", "app.kubernetes.io/component=webhook", "--tail=20", "--prefix"},
		{"logs", "-n", weirNamespace, "-l", "app.kubernetes.io/component=controller", "--tail=20", "--prefix"},
	} {
		out, _ := kubectl(ctx, args...)
		s.Logf("kubectl %s\n%s", strings.Join(args, " "), out)
	}
}

// kubectl runs it as the administrator and returns all that it prints.
func kubectl(ctx context.Context, args ...string) (string, error) {
	out, err := program(ctx, cluster.kubectl, args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func program(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.kubeconfig,
		"HELM_CONFIG_HOME="+cluster.dir, "HELM_CACHE_HOME="+cluster.dir, "HELM_DATA_HOME="+cluster.dir)
	return cmd
}

// kubectl runs it in the story's namespace.
func (s *story) kubectl(args ...string) (string, error) {
	s.Helper()
	return kubectl(s.Context(), append([]string{"-n", s.namespace}, args...)...)
}

// must is kubectl that is to succeed.
func (s *story) must(args ...string) string {
	s.Helper()
	out, err := s.kubectl(args...)
	if err != nil {
		s.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// apply makes what YAML says, in the story's namespace: STORY stands for the story's name, WORKER
// for the image.
func (s *story) apply(yaml string) {
	s.Helper()
	s.must("apply", "-f", s.file(yaml))
}

// file holds YAML for kubectl.
func (s *story) file(yaml string) string {
	s.Helper()
	file := filepath.Join(s.TempDir(), "objects.yaml")
	yaml = strings.NewReplacer("STORY", s.name, "WORKER", cluster.worker).Replace(yaml)
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		s.Fatal(err)
	}
	return file
}

// until waits for what has no objection any more.
func (s *story) until(what string, objection func(context.Context) error) {
	s.Helper()
	var last error
	err := wait.PollUntilContextTimeout(s.Context(), pollEvery, patience, true, func(ctx context.Context) (bool, error) {
		last = objection(ctx)
		return last == nil, nil
	})
	if err != nil {
		s.Fatalf("wait until %s: %v: %v", what, err, last)
	}
}

// said is an objection unless kubectl prints want.
func (s *story) said(want string, args ...string) func(context.Context) error {
	return func(context.Context) error {
		out, err := s.kubectl(args...)
		if err == nil && out != want {
			err = fmt.Errorf("kubectl %s: %q, want %q", strings.Join(args, " "), out, want)
		}
		return err
	}
}

// established waits until kinds are served. kubectl alone does not wait for a definition that has
// no conditions yet: it fails.
func (s *story) established(definitions ...string) {
	s.Helper()
	for _, name := range definitions {
		s.until(name+" is served", func(context.Context) error {
			out, err := s.kubectl("wait", "--for=condition=Established", "crd/"+name, "--timeout=60s")
			if err != nil {
				return errors.New(out)
			}
			return nil
		})
	}
}

// policy makes a policy for the story's namespace, to be removed at its end, and waits until it is
// in force in the controller; the webhook's replicas learn of it by themselves.
func (s *story) policy(kind, spec string) {
	s.Helper()
	s.apply("apiVersion: weir.dev/v1beta1\nkind: " + kind + "\nmetadata: {name: story-STORY}\nspec:\n" + spec)
	s.Cleanup(func() {
		if out, err := kubectl(context.WithoutCancel(s.Context()), "delete", kind, "story-"+s.name, "--ignore-not-found"); err != nil {
			s.Error(out)
		}
	})
	s.until("the policy is valid", s.said("True", "get", kind, "story-"+s.name, "-o", `jsonpath={.status.conditions[?(@.type=="Valid")].status}`))
}
