{{/* weir.releaseHook: made for the Job of helm uninstall, and gone after it. */}}
{{- define "weir.releaseHook" }}
  annotations:
    helm.sh/hook: pre-delete
    helm.sh/hook-weight: "-10"
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
