package policies

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// The schema describes groups and resources by regular expressions. What people write instead is
// mostly one of a few things.

var (
	resourceField = regexp.MustCompile(`\.resources\[\d+\]$`)
	anyIndex      = regexp.MustCompile(`\[\d+\]`)
	groupField    = regexp.MustCompile(`\.apiGroups\[\d+\]$`)
)

// spelled returns an error of the schema, for a group or resource in words that say what to write.
func spelled(err *field.Error) *field.Error {
	written, _ := err.BadValue.(string)
	why := ""
	switch {
	case !strings.Contains(err.Detail, "should match"):
	case groupField.MatchString(err.Field):
		why = misspelledGroup(written)
	case resourceField.MatchString(err.Field):
		why = misspelledResource(written)
	}
	if why == "" {
		return err
	}
	return field.Invalid(field.NewPath(err.Field), field.OmitValueType{}, why)
}

// renamed are the fields of v1alpha1 that have another name or form, and what to write.
var renamed = map[string]string{
	"spec.match.conditions": "matchConditions",
	"spec.waves[].timeout":  "timeoutSeconds, a number of seconds",
}

func unknownField(path string) string {
	if now, ok := renamed[anyIndex.ReplaceAllString(path, "[]")]; ok {
		return "unknown field: since " + v1beta1.GroupVersion.String() + " it is " + now
	}
	return "unknown field"
}

func misspelledGroup(written string) string {
	if group, _, versioned := strings.Cut(written, "/"); versioned {
		return fmt.Sprintf("%q is a group and a version, and policies are about all versions: write %q", written, group)
	}
	return fmt.Sprintf("%q is no API group: write it as in apiVersion, without the version, and the core "+
		"group as \"\"", written)
}

func misspelledResource(written string) string {
	switch resource, sub, has := strings.Cut(written, "/"); {
	case has && sub == "eviction":
		return fmt.Sprintf("%q is a subresource: write pods. An eviction is judged as the delete of its pod", written)
	case has:
		return fmt.Sprintf("%q is a subresource, and policies are about objects: write %s", written, resource)
	}
	lower := strings.ToLower(written)
	names := knownNames()
	for _, gr := range slices.SortedFunc(maps.Keys(names.meant), func(a, b schema.GroupResource) int {
		return compare(a.String(), b.String())
	}) {
		if gr.Resource == lower {
			lower = names.meant[gr]
			break
		}
	}
	return fmt.Sprintf("%q is not how a resource is written, which is as the lower-case plural: write %s",
		written, lower)
}
