{{- define "type" -}}
{{ if .GVK }}##{{ else }}###{{ end }} {{ .Name }}

{{ .Doc }}
{{ with .SortedReferences }}
Used by {{ range $i, $t := . }}{{ if $i }}, {{ end }}{{ markdownRenderTypeLink $t }}{{ end }}.
{{ end }}
{{- with index .Markers "kubebuilder:validation:XValidation" }}
Must hold:
{{ range . }}
* {{ .Message }}
{{- end }}
{{ end }}
{{- if .EnumValues }}
| value | what it does |
|---|---|
{{ range .EnumValues }}| `{{ .Name }}` | {{ template "cell" (regexReplaceAll "^[A-Z][A-Za-z]+ " .Doc "") }} |
{{ end }}
{{- else if .Members }}
| field | what it says | default | validation |
|---|---|---|---|
{{ if .GVK }}| `apiVersion` | `{{ .GVK.Group }}/{{ .GVK.Version }}` | | |
| `kind` | `{{ .GVK.Kind }}` | | |
{{ end }}
{{- range .Members }}| `{{ .Name }}` {{ markdownRenderType .Type }} | {{ template "cell" .Doc }} | {{ markdownRenderDefault .Default }} | {{ template "rules" . }} |
{{ end }}
{{- end }}
{{ end -}}

{{- define "cell" -}}
{{ regexReplaceAll "\\s+" (trim .) " " | replace "|" "\\|" | replace "*" "\\*" }}
{{- end -}}

{{- define "rules" -}}
{{- range $i, $rule := .Validation }}{{ if $i }}, {{ end }}{{ $rule | replace ": {}" "" | replace "1e+06" "1000000" | replace "|" "\\|" }}{{ end -}}
{{- end -}}
