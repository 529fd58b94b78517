package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weir-dev/weir/e2e/plane"
)

// kubeletConfig is for a machine that has other things to do and may be a container itself: cgroups
// v1 or v2, swap or none, a disk that is nearly full, and nothing below /var/lib/kubelet,
// /var/log/pods or in iptables. Mounted Secrets and ConfigMaps are brought up to date every few
// seconds instead of every minute, for those who wait for it.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
port: %[2]d
readOnlyPort: 0
healthzPort: 0
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: false}
  x509: {clientCAFile: %[3]s}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
containerRuntimeEndpoint: unix://%[4]s
evictionHard: {memory.available: 10Mi, nodefs.available: 0%%, nodefs.inodesFree: 0%%, imagefs.available: 0%%, imagefs.inodesFree: 0%%}
imageGCHighThresholdPercent: 100
makeIPTablesUtilChains: false
podLogsDir: %[5]s/logs
volumePluginDir: %[5]s/volumeplugins
resolvConf: ""
syncFrequency: 5s
`

// proxyConfig leaves the limits of the machine's connection tracking as they are.
const proxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
bindAddress: %[1]s
hostnameOverride: %[2]s
clientConnection: {kubeconfig: %[3]s}
clusterCIDR: %[4]s
healthzBindAddress: 127.0.0.1:%[5]d
metricsBindAddress: 127.0.0.1:%[6]d
mode: iptables
nodePortAddresses: [primary]
oomScoreAdj: 0
iptables: {localhostNodePorts: false, minSyncPeriod: 0s}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`

// kubeletDir has all that kubelet keeps. It makes a mount of its root, whose directory "pods" is
// another than that of the logs.
var (
	kubeletDir  = filepath.Join(dir, "kubelet")
	kubeletRoot = filepath.Join(kubeletDir, "root")
)

func (n *Node) startKubelet(ctx context.Context) error {
	_, kubeconfig, err := n.UserConfig("system:node:"+Name, "system:nodes")
	if err != nil {
		return err
	}
	port, err := plane.FreePort()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(kubeletRoot, 0o700); err != nil {
		return err
	}
	config := filepath.Join(dir, "kubelet.yaml")
	text := fmt.Sprintf(kubeletConfig, gateway, port, n.CAFile(), containerdSocket, kubeletRoot)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	n.kubelet, err = n.run(ctx, "kubelet", n.bins[plane.Kubelet],
		"--config="+config, "--kubeconfig="+kubeconfig, "--hostname-override="+Name, "--node-ip="+gateway,
		"--root-dir="+kubeletRoot, "--cert-dir="+filepath.Join(kubeletRoot, "pki"))
	return err
}

func (n *Node) startProxy(ctx context.Context) error {
	_, kubeconfig, err := n.UserConfig("system:kube-proxy")
	if err != nil {
		return err
	}
	health, err := plane.FreePort()
	if err != nil {
		return err
	}
	metrics, err := plane.FreePort()
	if err != nil {
		return err
	}
	text := fmt.Sprintf(proxyConfig, gateway, Name, kubeconfig, podCIDR, health, metrics)
	if err := os.WriteFile(proxyFile, []byte(text), 0o600); err != nil {
		return err
	}
	_, err = n.run(ctx, "kube-proxy", n.bins[plane.Proxy], "--config="+proxyFile)
	return err
}
