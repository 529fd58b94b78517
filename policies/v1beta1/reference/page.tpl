{{- define "gvList" -}}
# API reference

<!-- make generate writes this page from the comments of policies/v1beta1. -->

The kinds of `weir.dev/v1beta1`, all cluster-scoped. [policies/](policies/deletion-policy.md) says
what each is for, with examples. `kubectl explain` has the bounds of each field, too.
{{ range . }}{{ $group := . }}
{{- range .SortedKinds }}
* [{{ . }}](#{{ lower . }})
{{- end }}

## If several policies match

What refuses or holds applies of each. Of what there can be one, that of the policy with the highest
`priority` applies, and among equals of the first by name.

| part | of several |
|---|---|
| DeletionPolicy: `protection` | each |
| DeletionPolicy: `brake` | each: the lowest limit is reached first |
| DeletionPolicy: the whole of `propagation` | one, by `priority` and name |
| OwnerReferencePolicy: all parts | each |
| DrainPolicy: `waves` | one, by `priority` and name |
| `validationActions`, `failurePolicy` | each policy's own are for what it finds |

{{ range .SortedKinds }}{{ template "type" ($group.TypeForKind .) }}{{ end }}
## Types of their fields

{{ range .SortedTypes }}{{ if and (not .GVK) (markdownShouldRenderType .) }}{{ template "type" . }}{{ end }}{{ end }}
{{- end }}
{{- end -}}
