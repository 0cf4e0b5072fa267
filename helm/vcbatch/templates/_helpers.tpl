{{/* Names, labels, images and other small parts that all templates share. */}}

{{- define "vcbatch.chart" -}}
{{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Labels of every object. Takes the root context. */}}
{{- define "vcbatch.labels" -}}
{{- $own := dict
  "helm.sh/chart" (include "vcbatch.chart" .)
  "app.kubernetes.io/name" "vcbatch"
  "app.kubernetes.io/instance" .Release.Name
  "app.kubernetes.io/version" .Chart.AppVersion
  "app.kubernetes.io/part-of" "vcbatch"
  "app.kubernetes.io/managed-by" .Release.Service -}}
{{ merge $own .Values.commonLabels | toYaml }}
{{- end }}

{{/* The same and the component. Takes a dict: root, component. */}}
{{- define "vcbatch.componentLabels" -}}
{{ include "vcbatch.labels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* What selects the pods of a component. Takes a dict: root, component, and scheduler where there are several. */}}
{{- define "vcbatch.selectorLabels" -}}
app.kubernetes.io/name: vcbatch
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- with .scheduler }}
vcbatch.dev/scheduler: {{ . }}
{{- end }}
{{- end }}

{{/* An image by digest where there is one, else by tag. Takes a dict: root, image. */}}
{{- define "vcbatch.imageOf" -}}
{{- $registry := .root.Values.global.imageRegistry | default .image.registry -}}
{{- $name := ternary (printf "%s/%s" $registry .image.repository) .image.repository (not (empty $registry)) -}}
{{- if .image.digest -}}
{{ $name }}@{{ .image.digest }}
{{- else -}}
{{ $name }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* The image of all programs. Takes the root context. */}}
{{- define "vcbatch.image" -}}
{{ include "vcbatch.imageOf" (dict "root" . "image" .Values.image) }}
{{- end }}

{{/* imagePullSecrets of a pod, as a list of names; nothing where there are none. Takes the root context. */}}
{{- define "vcbatch.pullSecrets" -}}
{{- $names := list -}}
{{- range concat .Values.global.imagePullSecrets .Values.image.pullSecrets -}}
{{- $names = append $names (ternary . (dict "name" .) (kindIs "map" .)) -}}
{{- end -}}
{{- with uniq $names }}
imagePullSecrets:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{/* Name of a scheduler's Deployment and ConfigMap. Takes a scheduler of the list. */}}
{{- define "vcbatch.schedulerObject" -}}
{{ ternary "vcbatch-scheduler" (printf "vcbatch-scheduler-%s" .name) (eq .name "volcano") }}
{{- end }}

{{/* The Lease of a scheduler. Takes a scheduler of the list. */}}
{{- define "vcbatch.schedulerLease" -}}
{{ .lease | default (include "vcbatch.schedulerObject" .) }}
{{- end }}

{{/* A configuration that was given as text or as a mapping, as text. */}}
{{- define "vcbatch.configuration" -}}
{{ ternary . (toYaml .) (kindIs "string" .) }}
{{- end }}

{{/* Feature gates as a flag of a program takes them; empty where none is set. Takes the root context. */}}
{{- define "vcbatch.featureGates" -}}
{{- $set := list -}}
{{- range $name, $on := .Values.featureGates -}}
{{- $set = append $set (printf "%s=%t" $name $on) -}}
{{- end -}}
{{ join "," $set }}
{{- end }}

{{/* "true" where a webhook service runs. Takes the root context. */}}
{{- define "vcbatch.hasWebhooks" -}}
{{ eq .Values.admission.mode "webhooks" | ternary "true" "" }}
{{- end }}

{{/* A duration of hours, minutes and seconds in whole seconds, at least one. */}}
{{- define "vcbatch.seconds" -}}
{{- $total := 0.0 -}}
{{- range regexFindAll "[0-9]+(\\.[0-9]+)?(ns|us|ms|s|m|h)" . -1 -}}
{{- $number := regexFind "^[0-9]+(\\.[0-9]+)?" . | float64 -}}
{{- $unit := regexFind "[a-z]+$" . -}}
{{- $total = addf $total (mulf $number (get (dict "ns" 0.000000001 "us" 0.000001 "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0) $unit)) -}}
{{- end -}}
{{ max 1 (ceil $total) }}
{{- end }}
