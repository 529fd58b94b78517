package plane

import (
	"fmt"
	"net"
	"os"
	"strconv"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// UserConfig makes credentials for another identity, to be allowed by RBAC
// only what a test grants it. It returns them as a config and as the path of a
// kubeconfig, for clients that are processes.
func (p *Plane) UserConfig(user string, groups ...string) (*rest.Config, string, error) {
	// A user may be called system:serviceaccount:ns:name, or anything else,
	// so its name is no file name.
	f, err := os.CreateTemp(p.Dir, "user-*.kubeconfig")
	if err != nil {
		return nil, "", fmt.Errorf("write kubeconfig of %s: %w", user, err)
	}
	if err := f.Close(); err != nil {
		return nil, "", fmt.Errorf("write kubeconfig of %s: %w", user, err)
	}
	cfg, err := p.identity(f.Name(), user, groups...)
	return cfg, f.Name(), err
}

// identity makes the credentials and writes them to path.
func (p *Plane) identity(path, user string, groups ...string) (*rest.Config, error) {
	creds, err := p.pki.ca.client(user, groups...)
	if err != nil {
		return nil, err
	}
	cfg := &rest.Config{
		Host: "https://" + net.JoinHostPort(p.opts.address(), strconv.Itoa(p.port)),
		TLSClientConfig: rest.TLSClientConfig{
			CAData: p.pki.ca.bundle(), CertData: creds.cert, KeyData: creds.key,
		},
		// No limit of the client's own: tests and benchmarks measure what
		// the API server grants.
		QPS: -1,
	}
	if err := writeKubeconfig(path, cfg); err != nil {
		return nil, fmt.Errorf("write kubeconfig of %s: %w", user, err)
	}
	return cfg, nil
}

// writeKubeconfig puts the secrets into the file itself, so that it can be
// copied elsewhere.
func writeKubeconfig(path string, cfg *rest.Config) error {
	k := clientcmdapi.NewConfig()
	k.Clusters["plane"] = &clientcmdapi.Cluster{
		Server: cfg.Host, CertificateAuthorityData: cfg.CAData,
	}
	k.AuthInfos["user"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData,
	}
	k.Contexts["plane"] = &clientcmdapi.Context{Cluster: "plane", AuthInfo: "user"}
	k.CurrentContext = "plane"
	return clientcmd.WriteToFile(*k, path)
}
