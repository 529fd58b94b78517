{{- define "gvList" -}}
# API reference

<!-- make generate writes this page from the comments of policies/v1beta1. -->

The kinds of `weir.dev/v1beta1`, all cluster-scoped. [policies/](policies/deletion-policy.md) says
what each is for, with examples. `kubectl explain` has the bounds of each field, too.
{{ range . }}{{ $group := . }}
{{- range .SortedKinds }}
* [{{ . }}](#{{ lower . }})
{{- end }}

{{ range .SortedKinds }}{{ template "type" ($group.TypeForKind .) }}{{ end }}
## Types of their fields

{{ range .SortedTypes }}{{ if and (not .GVK) (markdownShouldRenderType .) }}{{ template "type" . }}{{ end }}{{ end }}
{{- end }}
{{- end -}}
