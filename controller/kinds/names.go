package kinds

import "k8s.io/apimachinery/pkg/runtime/schema"

// Kinds that more than one part of Weir knows.
var (
	ConfigMaps  = schema.GroupResource{Resource: "configmaps"}
	Namespaces  = schema.GroupResource{Resource: "namespaces"}
	Definitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	APIServices = schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}
)

// Twins are kinds that serve the same objects as another. One list, and one delete, is for both.
var Twins = map[schema.GroupResource]schema.GroupResource{
	{Group: "events.k8s.io", Resource: "events"}: {Resource: "events"},
}
