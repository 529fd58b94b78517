// Package stories is nothing but tests: what Weir's users live through, in a cluster with real
// pods, with Helm and kubectl as clients. They run in any cluster of KUBECONFIG that has the images
// and no Weir; the makefile's e2e-node, e2e-kind and e2e-cluster differ in where that cluster comes
// from. The first can also lose its node, by a socket that the environment names: only there is the
// story told of a cluster that begins again.
//
// Stories are told in one order in one installation, because pods take seconds. Each makes what it
// needs, so that one of them can be told alone: go test -run TestStories/protection ./stories
package stories
