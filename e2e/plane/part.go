package plane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Part is one program of a cluster, named as its binary is.
type Part string

// The parts.
const (
	Etcd              Part = "etcd"
	APIServer         Part = "kube-apiserver"
	ControllerManager Part = "kube-controller-manager"
	Scheduler         Part = "kube-scheduler"
	Kubectl           Part = "kubectl"
	Kwok              Part = "kwok"
	Kubelet           Part = "kubelet"
	Proxy             Part = "kube-proxy"
	E2ETest           Part = "e2e.test"
	Restorer          Part = "etcdutl"
)

// Parts lists all parts, in the order in which they share most of the build.
var Parts = []Part{APIServer, Etcd, ControllerManager, Scheduler, Kubectl, Kubelet, Proxy, Kwok, Restorer, E2ETest}

// Binaries says where each built part is.
type Binaries map[Part]string

// recipe is how one part is built.
type recipe struct {
	module  string // folder of the go.mod that pins it, below the e2e module
	pkg     string
	command []string
}

var recipes = map[Part]recipe{
	Etcd:              {".", "go.etcd.io/etcd/server/v3", goBuild},
	APIServer:         {".", "k8s.io/kubernetes/cmd/kube-apiserver", goBuild},
	ControllerManager: {".", "k8s.io/kubernetes/cmd/kube-controller-manager", goBuild},
	Scheduler:         {".", "k8s.io/kubernetes/cmd/kube-scheduler", goBuild},
	Kubectl:           {".", "k8s.io/kubernetes/cmd/kubectl", goBuild},
	Kubelet:           {".", "k8s.io/kubernetes/cmd/kubelet", goBuild},
	Proxy:             {".", "k8s.io/kubernetes/cmd/kube-proxy", goBuild},
	Kwok:              {"kwok", "sigs.k8s.io/kwok/cmd/kwok", goBuild},
	Restorer:          {"etcdutl", "go.etcd.io/etcd/etcdutl/v3", goBuild},
	E2ETest:           {".", "k8s.io/kubernetes/test/e2e", goTest},
}

// KubernetesVariable is an environment variable that has the control plane be of another version, as in "v1.34": one of those in
// versions, which make e2e-versions tests.
const KubernetesVariable = "E2E_KUBERNETES"

// folder is where the go.mod is that pins a part.
func (r recipe) folder(part Part) string {
	version := os.Getenv(KubernetesVariable)
	if version == "" || part != APIServer && part != ControllerManager && part != Scheduler {
		return r.module
	}
	return filepath.Join("versions", version)
}

var (
	goBuild = []string{"build"}
	goTest  = []string{"test", "-c"}
)

// ParsePart is the Part that a user means by name.
func ParsePart(name string) (Part, error) {
	if _, ok := recipes[Part(name)]; ok {
		return Part(name), nil
	}
	var known []string
	for _, p := range Parts {
		known = append(known, string(p))
	}
	return "", fmt.Errorf("no part %q: want one of %s", name, strings.Join(known, ", "))
}
