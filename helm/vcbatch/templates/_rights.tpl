{{/*
Service account, roles and bindings of a program, from the manifests of files/, in the release's namespace and without the
rights of features that are off. Takes a dict:
  root       the root context
  file       the manifests
  component  controllers, scheduler or webhooks
  without    rights that aren't granted: a list of {group, resource, verbs, name}; no verbs stands for all, a name for the
             rules that are limited to it
  leases     names of the scheduler's Leases, in the place of vcbatch-scheduler
  skip       kinds that aren't made
  account    annotations of the service account
*/}}
{{- define "vcbatch.rights" -}}
{{- $ := . -}}
{{- range $text := regexSplit "(?m)^---$" (.root.Files.Get .file) -1 -}}
{{- $document := fromYaml $text -}}
{{- if and $document (not (has $document.kind ($.skip | default list))) -}}
{{- $labels := fromYaml (include "vcbatch.componentLabels" (dict "root" $.root "component" $.component)) -}}
{{- $metadata := merge (dict "labels" $labels) $document.metadata -}}
{{- if hasKey $metadata "namespace" -}}
{{- $_ := set $metadata "namespace" $.root.Release.Namespace -}}
{{- end -}}
{{- $_ := set $document "metadata" $metadata -}}
{{- if eq $document.kind "ServiceAccount" -}}
{{- $_ := set $document "automountServiceAccountToken" false -}}
{{- with $.account -}}
{{- $_ := set $metadata "annotations" . -}}
{{- end -}}
{{- end -}}
{{- range $document.subjects -}}
{{- if hasKey . "namespace" -}}
{{- $_ := set . "namespace" $.root.Release.Namespace -}}
{{- end -}}
{{- end -}}
{{- if hasKey $document "rules" -}}
{{- $rules := fromYamlArray (include "vcbatch.rules" (dict "rules" $document.rules "without" ($.without | default list) "leases" $.leases)) -}}
{{- $_ := set $document "rules" $rules -}}
{{- end }}
---
{{ toYaml $document }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The rules without some rights, as a YAML list. Takes a dict: rules, without, leases. */}}
{{- define "vcbatch.rules" -}}
{{- $without := .without -}}
{{- $leases := .leases -}}
{{- $kept := list -}}
{{- range $rule := .rules -}}
{{- if and $leases (has "vcbatch-scheduler" ($rule.resourceNames | default list)) -}}
{{- $_ := set $rule "resourceNames" $leases -}}
{{- end -}}
{{- $resources := dict -}}
{{- $verbsOf := dict -}}
{{- $order := list -}}
{{- range $resource := $rule.resources -}}
{{- $verbs := $rule.verbs -}}
{{- range $without -}}
{{- if and (has .group $rule.apiGroups) (eq .resource $resource) (or (not .name) (has .name ($rule.resourceNames | default list))) -}}
{{- $withheld := .verbs | default $verbs -}}
{{- $left := list -}}
{{- range $verbs -}}
{{- if not (has . $withheld) -}}
{{- $left = append $left . -}}
{{- end -}}
{{- end -}}
{{- $verbs = $left -}}
{{- end -}}
{{- end -}}
{{- if $verbs -}}
{{- $key := join "," $verbs -}}
{{- $order = append $order $key | uniq -}}
{{- $_ := set $verbsOf $key $verbs -}}
{{- $_ := set $resources $key (append (get $resources $key | default list) $resource) -}}
{{- end -}}
{{- end -}}
{{- range $key := $order -}}
{{- $kept = append $kept (merge (dict "resources" (get $resources $key) "verbs" (get $verbsOf $key)) $rule) -}}
{{- end -}}
{{- end -}}
{{ toYaml $kept }}
{{- end }}
