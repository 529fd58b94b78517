{{/* weir.withVerbs: rules of the values, which have no verbs, with some; . is (dict "rules" … "verbs" …). */}}
{{- define "weir.withVerbs" -}}
{{- range .rules }}
- apiGroups: {{ toJson .apiGroups }}
  resources: {{ toJson .resources }}
  verbs: {{ toJson $.verbs }}
{{- end }}
{{- end }}

{{/* weir.readRules: what both workloads may see. */}}
{{- define "weir.readRules" -}}
# The ownership graph: who owns what, which decides what is deleted. Only metadata is asked for, but RBAC cannot say that.
{{- include "weir.withVerbs" (dict "rules" .Values.rbac.read.rules "verbs" (list "get" "list" "watch")) }}
# Which namespaces a selector means, and which kinds there are and when they change.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, list, watch]
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get, list, watch]
- apiGroups: [apiregistration.k8s.io]
  resources: [apiservices]
  verbs: [get, list, watch]
# The policies.
- apiGroups: [weir.dev]
  resources: [deletionpolicies, ownerreferencepolicies, drainpolicies]
  verbs: [get, list, watch]
{{- end }}

{{/* weir.metricsAuthRules: to find out who asks for /metrics, and whether they may. */}}
{{- define "weir.metricsAuthRules" -}}
{{- if .Values.metrics.enabled }}
# Who asks for /metrics.
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
{{- end }}
{{- end }}

{{/*
weir.certificateRules: in Weir's own namespace; . is (dict "root" $ "component" …). RBAC cannot restrict create by name:
the name is not known when it decides.
*/}}
{{- define "weir.certificateRules" -}}
{{- $c := .root.Values.certificates -}}
{{- if eq .component "controller" }}
# The token that the webhook's paths begin with: by it the webhook knows the API server. It is made if there is none.
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [weir-webhook-token]
  verbs: [get, list, watch]
{{- if ne $c.type "self" }}
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
{{- end }}
{{- else }}
# The token that the webhook's paths begin with: by it the webhook knows the API server.
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [weir-webhook-token]
  verbs: [get, list, watch]
{{- end }}
{{- if eq $c.type "self" }}
# The CA that the webhook's certificates are signed with. Whoever comes first makes it, and replaces it in time.
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [{{ $c.self.secretName | quote }}]
  verbs: [get, list, watch, update]
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
{{- else if eq $c.type "certManager" }}
{{- if eq .component "controller" }}
# The Certificate that cert-manager is asked for.
- apiGroups: [cert-manager.io]
  resources: [certificates]
  resourceNames: [weir-webhook]
  verbs: [get, patch]
- apiGroups: [cert-manager.io]
  resources: [certificates]
  verbs: [create]
{{- end }}
# The Secret that cert-manager writes.
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [{{ $c.certManager.secretName | quote }}]
  verbs: [get, list, watch]
{{- end }}
{{- end }}

{{/* weir.bind: a role's binding; . is (dict "root" $ "kind" "ClusterRole" "name" … "account" … "component" … and, for a Role, "namespace" …). */}}
{{- define "weir.bind" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  name: {{ .name | quote }}
  {{- with .namespace }}
  namespace: {{ . | quote }}
  {{- end }}
  labels: {{ include "weir.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name | quote }}
subjects:
- kind: ServiceAccount
  name: {{ .account | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
{{- end }}
