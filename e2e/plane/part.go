package plane

import (
	"fmt"
	"os"
	"path"
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
	module string // folder of the go.mod that pins it, below the e2e module
	pkg    string
}

// binary is the file name that the go command gives it: the last element of its path that is no
// version.
func (r recipe) binary() string {
	name := path.Base(r.pkg)
	if name == "v3" {
		name = path.Base(path.Dir(r.pkg))
	}
	if r == recipes[E2ETest] {
		name += ".test"
	}
	return name
}

var recipes = map[Part]recipe{
	Etcd:              {".", "go.etcd.io/etcd/server/v3"},
	APIServer:         {".", "k8s.io/kubernetes/cmd/kube-apiserver"},
	ControllerManager: {".", "k8s.io/kubernetes/cmd/kube-controller-manager"},
	Scheduler:         {".", "k8s.io/kubernetes/cmd/kube-scheduler"},
	Kubectl:           {".", "k8s.io/kubernetes/cmd/kubectl"},
	Kubelet:           {".", "k8s.io/kubernetes/cmd/kubelet"},
	Proxy:             {".", "k8s.io/kubernetes/cmd/kube-proxy"},
	Kwok:              {"kwok", "sigs.k8s.io/kwok/cmd/kwok"},
	Restorer:          {".", "go.etcd.io/etcd/etcdutl/v3"},
	E2ETest:           {".", "k8s.io/kubernetes/test/e2e"},
}

// KubernetesVariable is an environment variable that has the control plane be of another version,
// as in "v1.34": one of those in versions, which make e2e-versions tests.
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
