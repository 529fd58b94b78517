//go:build stories

package stories

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// values are what the stories set: everything that comes with Weir is on. The arming window is
// shorter than what is safe with requests that take long, because the stories wait for it.
var values = []string{
	"webhook.extraArgs={--test-arming-window=10s}", "log.verbosity=1",
	"policies.defaultPropagation=true", "policies.protection=true", "policies.ownerLint=true",
	"policies.ownerPermissions=true", "policies.drainOrder=true", "policies.undo=true",
}

// release is what is installed: nothing, or with which values.
var release struct {
	installed, failed bool
	extra             []string
}

// weir sees to it that the chart is installed with the stories' values and these.
func (s *story) weir(extra ...string) {
	s.Helper()
	if release.installed && slices.Equal(release.extra, extra) {
		return
	}
	if release.failed {
		s.Fatal("Weir could not be installed for an earlier story")
	}
	release.failed = true
	s.helm(upgrade(chart, extra...)...)
	release.installed, release.failed, release.extra = true, false, extra
}

// upgrade are Helm's arguments that install a chart, or change an installation into it.
func upgrade(chart string, extra ...string) []string {
	args := []string{"upgrade", "--install", "weir", chart, "--create-namespace", "--reset-values", "--wait", "--timeout", "3m"}
	for _, v := range slices.Concat(values, extra) {
		args = append(args, "--set", v)
	}
	return args
}

// helm runs Helm, which is to succeed.
func (s *story) helm(args ...string) string {
	s.Helper()
	out, err := program(s.Context(), cluster.helm, append(args, "--namespace", weirNamespace)...).CombinedOutput()
	if err != nil {
		s.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// installed: helm install ends when Weir works: policies hold, and the API server reaches the
// webhook through its Service; helm test says so, too.
func (s *story) installed() {
	s.weir()
	for _, kind := range []string{"validatingwebhookconfiguration", "mutatingwebhookconfiguration"} {
		s.until("the API server knows the webhook", func(ctx context.Context) error {
			return s.said("weir-webhook", "get", kind, "weir", "-o", "jsonpath={.webhooks[0].clientConfig.service.name}")(ctx)
		})
	}
	s.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: owner}\n")
	owner := s.must("get", "configmap", "owner", "-o", "jsonpath={.metadata.uid}")
	mistaken := s.file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mistaken, ownerReferences: [{apiVersion: v1, kind: Secret, name: owner, uid: " + owner + "}]}\n")
	s.until("an owner reference of the wrong kind is refused", func(context.Context) error {
		out, err := s.kubectl("create", "--dry-run=server", "-f", mistaken)
		if err == nil || !strings.Contains(out, `OwnerReferencePolicy "owner-lint"`) {
			return fmt.Errorf("kubectl create says %q", out)
		}
		return nil
	})
	ask := s.asker()
	s.until("a plan knows the policies that come with the chart, which are files", func(context.Context) error {
		if out := ask("plan", "namespace", s.namespace); !strings.Contains(out, "a policy refuses the delete") {
			return fmt.Errorf("kubectl weir plan says %q", out)
		}
		return nil
	})
	s.helm("test", "weir", "--timeout", "2m")
}
