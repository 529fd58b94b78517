// Package v1beta1 holds Weir's API types: what users write to say how objects may be deleted, and
// what is deleted with them.
//
// Every rule that the API server can hold is in the schema, and proved there by e2e/policies. What it cannot hold
// (CEL that does not compile, selectors that do not parse) is found by package policies, and shown in the condition
// Valid. A field's comment says what it means to leave it out.
//
// +kubebuilder:object:generate=true
// +groupName=weir.dev
package v1beta1

//go:generate go tool -modfile=../../go.tools.mod controller-gen object crd paths=. output:crd:dir=../crds
//go:generate go tool -modfile=../../go.tools.mod crd-ref-docs --log-level=ERROR --source-path=. --config=reference/config.yaml --templates-dir=reference --renderer=markdown --output-path=../../docs/api.md
