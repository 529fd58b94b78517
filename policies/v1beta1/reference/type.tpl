{{- define "type" -}}
{{ if .GVK }}##{{ else }}###{{ end }} {{ .Name }}

{{ if not (or .EnumValues (hasSuffix "Spec" .Name) (hasSuffix "Status" .Name)) }}{{ .Doc }}

{{ end }}
{{- with index .Markers "kubebuilder:validation:XValidation" }}Must hold:
{{ range . }}
* {{ .Message }}
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
{{ range .Members }}| `{{ .Name }}`{{ if has "Required: {}" .Validation }}, required{{ end }}, {{ markdownRenderType .Type }} | {{ template "cell" (regexReplaceAll (printf "^%s (is|are) " .Name) .Doc "") }} | {{ markdownRenderDefault .Default }} |
{{ end }}
{{ end -}}
{{ end -}}

{{- define "cell" -}}
{{ regexReplaceAll "\\s+" (trim .) " " | replace "|" "\\|" | replace "*" "\\*" }}
{{- end -}}
