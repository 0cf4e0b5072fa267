{{/* The Secret with the certificate, where the service doesn't make it itself. Takes the root context. */}}
{{- define "vcbatch.certificateSecret" -}}
{{ eq .Values.admission.certificates "cert-manager" | ternary "vcbatch-webhooks-tls" .Values.admission.secretName }}
{{- end }}

{{/* A manifest of files/ for this release: its namespace, and its schedulers where `volcano` is compared with. */}}
{{- define "vcbatch.admissionText" -}}
{{- $names := list -}}
{{- range .root.Values.schedulers -}}
{{- $names = append $names (squote .name) -}}
{{- end -}}
{{- $ours := printf " in [%s]" (join ", " $names) -}}
{{ .root.Files.Get .file
  | replace "volcano-system" .root.Release.Namespace
  | replace " == 'volcano'" $ours
  | replace " in ['volcano']" $ours
  | replace "value: 'volcano'" (printf "value: '%s'" (first .root.Values.schedulers).name) }}
{{- end }}
