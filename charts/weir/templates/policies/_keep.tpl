{{/*
weir.wouldDelete: whether Helm deletes a CustomResourceDefinition that leaves the manifest, and all policies with it: it is of this release, and nothing
tells Helm to keep it, whatever the values say now. . is (dict "root" $ "name" …).
*/}}
{{- define "weir.wouldDelete" -}}
{{- if .root.Release.IsUpgrade -}}
{{- $live := dig "metadata" "annotations" dict (lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" .name) -}}
{{- $same := and (eq (index $live "meta.helm.sh/release-name" | default "") .root.Release.Name) (eq (index $live "meta.helm.sh/release-namespace" | default "") .root.Release.Namespace) -}}
{{- if and $same (ne (index $live "helm.sh/resource-policy" | default "") "keep") }}true{{ end -}}
{{- end -}}
{{- end }}
