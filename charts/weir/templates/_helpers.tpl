{{/*
Names are fixed: Weir is installed once in a cluster, its webhook configurations, CRDs and cluster roles have one name, and
its user names are known to the processes. So release names do not matter.
*/}}

{{/* weir.labels: for (dict "root" $ "component" "controller"). */}}
{{- define "weir.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service | quote }}
app.kubernetes.io/part-of: weir
{{ include "weir.selector" . }}
{{- end }}

{{/* weir.selector: the labels of a component that never change. */}}
{{- define "weir.selector" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "weir.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default (print "v" $.Chart.AppVersion) }}{{ end }}
{{- end -}}
{{- end }}

{{/*
weir.apiServerPorts: where pods find the API server, as a comma-separated list: the port of its Service, and those behind it,
whichever of the two a network plugin looks at. Empty where nothing is looked up.
*/}}
{{- define "weir.apiServerPorts" -}}
{{- $ports := .Values.networkPolicy.apiServerPorts -}}
{{- if not $ports -}}
{{- $slices := (lookup "discovery.k8s.io/v1" "EndpointSlice" "default" "").items | default list -}}
{{- range $slices -}}
{{- if eq (dig "metadata" "labels" "kubernetes.io/service-name" "" .) "kubernetes" -}}
{{- range .ports -}}{{- $ports = append $ports .port -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if $ports -}}
{{- range dig "spec" "ports" list (lookup "v1" "Service" "default" "kubernetes") -}}{{- $ports = append $ports .port -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- $out := list -}}
{{- range $ports -}}{{- $out = append $out (int . | toString) -}}{{- end -}}
{{- $out | uniq | sortAlpha | join "," -}}
{{- end }}

{{- define "weir.imagePullPolicy" -}}
{{- .Values.image.pullPolicy | default (ternary "Never" "IfNotPresent" (hasPrefix "localhost/" .Values.image.repository)) -}}
{{- end }}

{{/* weir.priorityClassName: the name of the class that pods are to have, or nothing. */}}
{{- define "weir.priorityClassName" -}}
{{- if and .Values.priorityClass.create .Values.priorityClass.name -}}
{{- fail "priorityClass.name is an existing class: set priorityClass.create to false" -}}
{{- end -}}
{{- if .Values.priorityClass.create }}weir{{ else }}{{ .Values.priorityClass.name }}{{ end -}}
{{- end }}

{{/*
weir.selfUsers: the users that Weir acts under. Their requests are never judged, or Weir would refuse its own deletes, and
add the finalizer again where it removes it.
*/}}
{{- define "weir.selfUsers" -}}
{{- $users := list -}}
{{- range list .Values.controller.serviceAccount.name .Values.webhook.serviceAccount.name "weir-release" "weir-test" -}}
{{- $users = append $users (printf "system:serviceaccount:%s:%s" $.Release.Namespace .) -}}
{{- end -}}
{{ join "," $users }}
{{- end }}
