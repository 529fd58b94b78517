{{- define "type" -}}
{{ if .GVK }}##{{ else }}###{{ end }} {{ .Name }}

{{ if not (or .EnumValues (hasSuffix "Spec" .Name) (hasSuffix "Status" .Name)) }}{{ .Doc }}

{{ end }}
{{- with index .Markers "kubebuilder:validation:XValidation" }}Must hold:
{{ range . }}
* {{ wrapWith 96 "\n  " .Message }}
{{- end }}

{{ end }}
{{- if .EnumValues -}}
| value | what it does |
|---|---|
{{ range .EnumValues }}| `{{ .Name }}` | {{ template "cell" (regexReplaceAll "^[A-Z][A-Za-z]+ " .Doc "") }} |
{{ end }}
{{ else if .GVK -}}
{{ range .Members }}{{ if ne .Name "metadata" }}* `{{ .Name }}`: {{ markdownRenderType .Type }}
{{ end }}{{ end }}
{{ else if .Members -}}
| field | what it says | default |
|---|---|---|
{{ $kind := .Name -}}
{{ $of := "DeletionPolicySpec" -}}
{{ if hasSuffix "Status" $kind }}{{ $of = "DeletionPolicyStatus" }}{{ end -}}
{{ $again := and (regexMatch "^((Drain|OwnerReference)Policy(Spec|Status)|PolicyStatus)$" $kind) (ne $kind "DrainPolicySpec") -}}
{{ range .Members }}| `{{ .Name }}`{{ if has "Required: {}" .Validation }}, required{{ end }}, {{ markdownRenderType .Type }} | {{ if and $again (has .Name (list "conditions" "matched" "message" "messageExpression")) }}as in [{{ $of }}](#{{ lower $of }}){{ else }}{{ template "cell" (regexReplaceAll (printf "^%s (is|are) " .Name) .Doc "") }}{{ end }} | {{ markdownRenderDefault .Default }} |
{{ end }}
{{ end -}}
{{ end -}}

{{- define "cell" -}}
{{ regexReplaceAll "\\s+" (trim .) " " | replace "|" "\\|" | replace "*" "\\*" }}
{{- end -}}
