{{/*
weir.releaseOn: the hooks of Helm on which everything is released. Shadow mode serves neither webhook configurations nor finalizers: they go
before an upgrade to it, of which the webhook tells that is still there, and before a rollback, which renders nothing.
*/}}
{{- define "weir.releaseOn" -}}
{{- if ne .Values.mode "shadow" -}}
pre-delete
{{- else -}}
pre-rollback{{ if lookup "apps/v1" "Deployment" .Release.Namespace "weir-webhook" }},pre-upgrade{{ end }}
{{- end -}}
{{- end }}

{{/*
weir.releases: whether there is a Job that releases everything. In mode shadow there is, whatever the values say: the values of the revision that a
rollback leaves are not those that made this one, and nothing else could refuse. . is the root.
*/}}
{{- define "weir.releases" -}}
{{- if or .Values.uninstall.release (eq .Values.mode "shadow") }}true{{ end -}}
{{- end }}

{{/* weir.releaseHook: made for the Job, and gone after it; . is the root. */}}
{{- define "weir.releaseHook" }}
  annotations:
    helm.sh/hook: {{ include "weir.releaseOn" . }}
    helm.sh/hook-weight: "-10"
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{/*
weir.helmRelease: the release of which the Job is a hook, or - where nothing is looked up: helm template prints hooks as it prints the rest, and whoever
applies that has not uninstalled anything. The namespace default is in every cluster. . is the root.
*/}}
{{- define "weir.helmRelease" -}}
{{- if lookup "v1" "Namespace" "" "default" }}{{ .Release.Name }}{{ else }}-{{ end -}}
{{- end }}
