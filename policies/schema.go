package policies

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// CRDs are the CustomResourceDefinitions of the policies, of HeldCollections and of the archive, one
// file each in the directory crds.
//
//go:embed crds/*.yaml
var CRDs embed.FS

// kindSchema is the schema of a kind. A policy in a file never reaches the API server; the same
// code applies the same rules to it, from the same CustomResourceDefinition.
type kindSchema struct {
	structural *structuralschema.Structural
	values     schemavalidation.SchemaValidator
	rules      *schemacel.Validator
}

var schemas = sync.OnceValue(func() map[string]kindSchema {
	out := map[string]kindSchema{}
	err := fs.WalkDir(CRDs, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := CRDs.ReadFile(path)
		if err != nil {
			return err
		}
		kind, s, err := readSchema(data)
		out[kind] = s
		return err
	})
	if err != nil {
		panic(fmt.Sprintf("policies: embedded CRDs: %v", err))
	}
	return out
})

func readSchema(data []byte) (string, kindSchema, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return "", kindSchema{}, err
	}
	var props apiextensions.JSONSchemaProps
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(schema, &props, nil)
	if err != nil {
		return "", kindSchema{}, err
	}
	structural, err := structuralschema.NewStructural(&props)
	if err != nil {
		return "", kindSchema{}, err
	}
	values, _, err := schemavalidation.NewSchemaValidator(&props)
	if err != nil {
		return "", kindSchema{}, err
	}
	return crd.Spec.Names.Kind, kindSchema{
		structural: structural, values: values, rules: schemacel.NewValidator(structural, true, celconfig.PerCallLimit),
	}, nil
}

// admit does to a policy what the API server does: it fills in defaults and applies every rule. The
// errors are sorted.
func (k kindSchema) admit(in map[string]any) (map[string]any, field.ErrorList) {
	obj := runtime.DeepCopyJSON(in)
	var errs field.ErrorList
	for _, unknown := range pruning.PruneWithOptions(obj, k.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		errs = append(errs, field.Invalid(field.NewPath(unknown), field.OmitValueType{}, "unknown field"))
	}
	defaulting.Default(obj, k.structural)
	name := object(obj).name()
	for _, msg := range validation.NameIsDNSSubdomain(name, false) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), name, msg))
	}
	bad := schemavalidation.ValidateCustomResource(nil, obj, k.values)
	bad = append(bad, listtype.ValidateListSetsAndMaps(nil, k.structural, obj)...)
	if len(bad) == 0 && k.rules != nil { // as in the API server, rules assume valid values
		bad, _ = k.rules.Validate(context.Background(), nil, k.structural, obj, nil, celconfig.RuntimeCELCostBudget)
	}
	errs = append(errs, bad...)
	slices.SortStableFunc(errs, func(a, b *field.Error) int {
		return cmp.Or(compare(a.Field, b.Field), compare(a.Detail, b.Detail))
	})
	return obj, errs
}
