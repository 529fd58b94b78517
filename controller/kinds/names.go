package kinds

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds that mean something to more than one part of Weir.
var (
	ConfigMaps               = schema.GroupResource{Resource: "configmaps"}
	Namespaces               = schema.GroupResource{Resource: "namespaces"}
	Definitions              = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	APIServices              = schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}
	MutatingConfigurations   = schema.GroupResource{Group: admissionregistrationv1.GroupName, Resource: "mutatingwebhookconfigurations"}
	ValidatingConfigurations = schema.GroupResource{Group: admissionregistrationv1.GroupName, Resource: "validatingwebhookconfigurations"}
)

// Twins are kinds that are the same objects under another name. One list, and one delete, is for
// both.
var Twins = map[schema.GroupResource]schema.GroupResource{
	{Group: "events.k8s.io", Resource: "events"}: {Resource: "events"},
}
