{{/* How metrics are scraped, for a ServiceMonitor or a PodMonitor. Takes the values of one of them. */}}
{{- define "vcbatch.scraping" -}}
path: /metrics
{{- with .interval }}
interval: {{ . }}
{{- end }}
{{- with .scrapeTimeout }}
scrapeTimeout: {{ . }}
{{- end }}
{{- with .relabelings }}
relabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Metadata of an object for Prometheus or Grafana. Takes a dict: root, name, settings (namespace, labels, annotations). */}}
{{- define "vcbatch.monitoringMetadata" -}}
name: {{ .name }}
namespace: {{ .settings.namespace | default .root.Release.Namespace }}
labels:
  {{- merge (deepCopy .settings.labels) (fromYaml (include "vcbatch.labels" .root)) | toYaml | nindent 2 }}
{{- with .settings.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
