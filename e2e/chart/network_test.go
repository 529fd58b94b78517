package chart_test

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sayWhereTheAPIServerIs writes the EndpointSlice of the Service kubernetes, and returns the port
// in it. An API server does so itself, but not of a loopback address.
func sayWhereTheAPIServerIs(t *testing.T) string {
	t.Helper()
	at, err := url.Parse(shared.plane.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(at.Port(), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	client := shared.client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault)
	made, err := client.Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{GenerateName: "kubernetes-", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}}},
		Ports: []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(port))}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Delete(context.WithoutCancel(t.Context()), made.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return at.Port()
}

// letsOutTo checks that Helm has found the ports of the API server.
func letsOutTo(t *testing.T, want ...string) {
	t.Helper()
	all, err := shared.client.NetworkingV1().NetworkPolicies(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Items) != 4 {
		t.Errorf("there are %d network policies, want 4", len(all.Items))
	}
	for _, p := range all.Items {
		var ports []string
		for _, rule := range p.Spec.Egress {
			for _, port := range rule.Ports {
				ports = append(ports, port.Port.String())
			}
		}
		there := slices.Clone(want)
		if p.Name == "weir-controller" {
			there = append(there, "webhook") // it calls the webhook when that does not answer the API server
		}
		slices.Sort(ports)
		slices.Sort(there)
		if !slices.Equal(ports, there) {
			t.Errorf("%s lets out to %v, want %v", p.Name, ports, there)
		}
	}
}
