{{/* What both workloads have in common; . is (dict "root" $ "component" … "values" .Values.…). */}}

{{/* weir.args: flags of both. */}}
{{- define "weir.args" -}}
- --policy-dir=/etc/weir/policies
- --self-users={{ include "weir.selfUsers" .root }}
{{ include "weir.processArgs" . }}
{{ include "weir.certificateArgs" .root }}
{{- end }}

{{/* weir.processArgs: flags of every process. */}}
{{- define "weir.processArgs" -}}
{{- $v := .root.Values -}}
- --metrics-bind-address={{ ternary ":8443" "0" $v.metrics.enabled }}
- --health-probe-bind-address=:8081
- --log-format={{ $v.log.format }}
- -v={{ $v.log.verbosity }}
{{- end }}

{{- define "weir.certificateArgs" -}}
{{- $c := .Values.certificates -}}
- --webhook-service={{ .Release.Namespace }}/weir-webhook
{{- if eq $c.type "self" }}
- --webhook-certificates=self
- --webhook-cert-secret={{ .Release.Namespace }}/{{ $c.self.secretName }}
{{- else if eq $c.type "certManager" }}
- --webhook-certificates=cert-manager
- --webhook-cert-secret={{ .Release.Namespace }}/{{ $c.certManager.secretName }}
- --webhook-cert-issuer={{ $c.certManager.issuer.kind }}/{{ $c.certManager.issuer.name | default "weir-self-signed" }}
{{- else }}
- --webhook-certificates=files
- --webhook-cert-dir=/etc/weir/certificates
{{- end }}
{{- end }}

{{/* weir.certificateSecret: the Secret that has the webhook's certificate, or the CA of it; in ca.crt is whom to trust. */}}
{{- define "weir.certificateSecret" -}}
{{- $c := .Values.certificates -}}
{{- if eq $c.type "self" }}{{ $c.self.secretName }}{{ else if eq $c.type "certManager" }}{{ $c.certManager.secretName }}{{ else }}{{ $c.provided.secretName }}{{ end -}}
{{- end }}

{{- define "weir.volumeMounts" -}}
- {name: policies, mountPath: /etc/weir/policies, readOnly: true}
{{- if eq .Values.certificates.type "provided" }}
- {name: certificates, mountPath: /etc/weir/certificates, readOnly: true}
{{- end }}
{{- end }}

{{- define "weir.volumes" -}}
- name: policies
  configMap: {name: weir-policies}
{{- if eq .Values.certificates.type "provided" }}
- name: certificates
  secret: {secretName: {{ required "certificates.provided.secretName: with type provided, name the Secret" .Values.certificates.provided.secretName | quote }}}
{{- end }}
{{- end }}

{{/* weir.podSecurity: what the restricted Pod Security Standard asks for. */}}
{{- define "weir.podSecurity" -}}
runAsNonRoot: true
{{- with .Values.runAsUser }}
runAsUser: {{ int64 . }}
runAsGroup: {{ int64 . }}
fsGroup: {{ int64 . }}
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "weir.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* weir.probes: alive is the process, ready is what it needs to do its work. */}}
{{- define "weir.probes" -}}
livenessProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: health}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 1
{{- end }}

{{/* weir.placement: where pods go. */}}
{{- define "weir.placement" -}}
{{- with .values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
{{- if .values.topologySpreadConstraints }}
  {{- toYaml .values.topologySpreadConstraints | nindent 2 }}
{{- else }}
{{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
- maxSkew: 1
  topologyKey: {{ . }}
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {{ include "weir.selector" $ | nindent 6 }}
{{- end }}
{{- end }}
{{- end }}

{{/* weir.podMetadata: labels and annotations of pods. */}}
{{- define "weir.podMetadata" -}}
labels:
  {{- include "weir.selector" . | nindent 2 }}
  {{- with .values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .values.podAnnotations }}
annotations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "weir.serviceAccount" -}}
{{- if .values.serviceAccount.create -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .values.serviceAccount.name | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels: {{ include "weir.labels" . | nindent 4 }}
  {{- with .values.serviceAccount.annotations }}
  annotations: {{ toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}

{{/* weir.podDisruptionBudget: none for one pod, which could never be evicted then: kubectl drain of its node would not end. */}}
{{- define "weir.podDisruptionBudget" -}}
{{- if and .values.podDisruptionBudget.enabled (gt (int .values.replicas) 1) -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: weir-{{ .component }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels: {{ include "weir.labels" . | nindent 4 }}
spec:
  minAvailable: {{ .values.podDisruptionBudget.minAvailable }}
  # A pod that is not ready serves no request: it must not hold up the draining of its node.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {{ include "weir.selector" . | nindent 6 }}
{{- end }}
{{- end }}
