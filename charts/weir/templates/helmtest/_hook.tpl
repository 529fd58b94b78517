{{/* weir.testHook: made for helm test, and gone after it; what failed stays, for its log. . is the weight. */}}
{{- define "weir.testHook" }}
  annotations:
    helm.sh/hook: test
    helm.sh/hook-weight: {{ . | quote }}
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
