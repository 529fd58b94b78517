// Package node makes this machine the node of a real cluster: beside the control plane of package
// plane it runs containerd, kubelet and kube-proxy, so that pods run, Services answer, and what is
// installed in the cluster is called by the API server through its Service.
//
// It takes root, Linux and a few programs of the distribution (Missing says which are not there).
// It has a directory, a containerd and a bridge of its own, and leaves those of the machine alone:
// neither containerd's default socket and state nor /etc/cni are touched. What it cannot have for
// itself are the names that kube-proxy gives to chains of iptables and kubelet's directory for
// device plugins (/var/lib/kubelet/device-plugins, which stays behind): so it refuses to start
// where another kube-proxy works, and there is one node a machine.
//
//	10.97.0.1   the bridge: the API server and the kubelet listen here, and nowhere else but on loopback
//	10.97.0.0   pods; their only way out is the bridge
//	10.96.0.0   Services
//
// Nothing survives: a node that was killed is cleaned up by the next that starts.
package node
