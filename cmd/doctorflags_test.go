package cmd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/internal/tools/doctor"
)

func TestWhatTheDeploymentSaysAboutOthers(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		mode string
		want doctor.Flags
	}{
		"nothing":                 {[]string{"controller"}, doctor.Companion, doctor.Flags{}},
		"shadow mode":             {[]string{"controller", "--mode=shadow"}, doctor.Shadow, doctor.Flags{}},
		"no brake users":          {[]string{"controller", "--brake-users="}, doctor.Companion, doctor.Flags{}},
		"two brake users":         {[]string{"controller", "--mode=companion", "--brake-users=a,b"}, doctor.Companion, doctor.Flags{BrakeUsers: []string{"a", "b"}}},
		"namespaces are left":     {[]string{"controller", "--mode=replace", "--drain-namespaces=false"}, doctor.Replace, doctor.Flags{LeavesNamespaces: true}},
		"namespaces are drained":  {[]string{"controller", "--mode=replace", "--drain-namespaces=true"}, doctor.Replace, doctor.Flags{}},
		"a Lease, in two words":   {[]string{"controller", "--mode", "replace", "--migration-lease", "kube-system/x"}, doctor.Replace, doctor.Flags{MigrationLease: "kube-system/x"}},
		"a Lease, as one does it": {[]string{"controller", "--mode=replace", "--migration-lease=kube-system/x"}, doctor.Replace, doctor.Flags{MigrationLease: "kube-system/x"}},
	} {
		t.Run(name, func(t *testing.T) {
			var d appsv1.Deployment
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "weir", Args: c.args}, {Name: "proxy"}}
			mode, flags := flagsOf(&d)
			if mode != c.mode {
				t.Errorf("mode %s, want %s", mode, c.mode)
			}
			if diff := cmp.Diff(c.want, flags); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhetherControllersHaveCredentialsOfTheirOwn(t *testing.T) {
	for flag, want := range map[string]bool{
		"--use-service-account-credentials":       true,
		"--use-service-account-credentials=true":  true,
		"--use-service-account-credentials=false": false,
		"--leader-elect=true":                     false,
	} {
		if got := own([]string{"kube-controller-manager", flag, "--v=2"}); got != want {
			t.Errorf("%s: %t", flag, got)
		}
	}
}
