{{/* What can't work is refused with what to do about it. `lookup` finds nothing in `helm template`. */}}
{{- define "vcbatch.guards" -}}
{{- include "vcbatch.guardValues" . -}}
{{- include "vcbatch.guardApis" . -}}
{{- include "vcbatch.guardReleases" . -}}
{{- include "vcbatch.guardCrds" . -}}
{{- end }}

{{- define "vcbatch.guardValues" -}}
{{- $names := list -}}
{{- $leases := list -}}
{{- range $index, $_ := .Values.schedulers -}}
{{- if has .name $names -}}
{{- fail (printf "schedulers[%d].name: %q is the name of another scheduler of the list; want one each" $index .name) -}}
{{- end -}}
{{- $lease := include "vcbatch.schedulerLease" . -}}
{{- if or (has $lease $leases) (eq $lease "vcbatch-controllers") -}}
{{- fail (printf "schedulers[%d].lease: %q is the Lease of another program; want one each" $index $lease) -}}
{{- end -}}
{{- if and .policy .policyConfigMap -}}
{{- fail (printf "schedulers[%d]: policy and policyConfigMap exclude each other" $index) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- $leases = append $leases $lease -}}
{{- end -}}
{{- $monitoring := .Values.monitoring -}}
{{- if and $monitoring.serviceMonitor.enabled $monitoring.podMonitor.enabled -}}
{{- fail "monitoring: serviceMonitor and podMonitor exclude each other; everything would be scraped twice" -}}
{{- end -}}
{{- if and $monitoring.serviceMonitor.enabled (not $monitoring.service.enabled) -}}
{{- fail "monitoring.serviceMonitor.enabled needs monitoring.service.enabled; without Services, use monitoring.podMonitor" -}}
{{- end -}}
{{- $admission := .Values.admission -}}
{{- if and (include "vcbatch.hasWebhooks" .) (eq $admission.certificates "secret") -}}
{{- if not $admission.secretName -}}
{{- fail "admission.certificates: \"secret\" needs admission.secretName, a Secret with tls.crt, tls.key and ca.crt" -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "vcbatch.guardApis" -}}
{{- if and (include "vcbatch.hasWebhooks" .) (eq .Values.admission.certificates "cert-manager") -}}
{{- if not (.Capabilities.APIVersions.Has "cert-manager.io/v1") -}}
{{- fail "admission.certificates: \"cert-manager\" needs cert-manager, and the cluster doesn't serve cert-manager.io/v1. Install cert-manager first, or set admission.certificates=self (with `helm template`, add --api-versions cert-manager.io/v1)" -}}
{{- end -}}
{{- end -}}
{{- $monitoring := .Values.monitoring -}}
{{- range $value, $on := dict "serviceMonitor" $monitoring.serviceMonitor.enabled "podMonitor" $monitoring.podMonitor.enabled "prometheusRule" $monitoring.prometheusRule.enabled -}}
{{- if and $on (not ($.Capabilities.APIVersions.Has "monitoring.coreos.com/v1")) -}}
{{- fail (printf "monitoring.%s.enabled needs the Prometheus operator, and the cluster doesn't serve monitoring.coreos.com/v1. Install it first, or set monitoring.%s.enabled=false (with `helm template`, add --api-versions monitoring.coreos.com/v1)" $value $value) -}}
{{- end -}}
{{- end -}}
{{- if eq .Values.admission.mode "policies" -}}
{{- if not (include "vcbatch.mutatingPolicies" .) -}}
{{- fail (printf "admission.mode: \"policies\" needs MutatingAdmissionPolicies, which Kubernetes serves from 1.36 on (1.34 and 1.35: turn on admissionregistration.k8s.io/v1beta1 and the feature gate MutatingAdmissionPolicy); this cluster is %s and doesn't serve them. Set admission.mode=webhooks" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Version of the API by which the cluster serves MutatingAdmissionPolicies; empty where it doesn't. */}}
{{- define "vcbatch.mutatingPolicies" -}}
{{- if semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version -}}
admissionregistration.k8s.io/v1
{{- else if .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy" -}}
admissionregistration.k8s.io/v1beta1
{{- end -}}
{{- end }}

{{/* Release and namespace that an object belongs to, as "NAME in namespace NAMESPACE"; empty where it is this release or none. */}}
{{- define "vcbatch.otherOwner" -}}
{{- $annotations := dig "metadata" "annotations" dict .object | default dict -}}
{{- $name := get $annotations "meta.helm.sh/release-name" -}}
{{- $namespace := get $annotations "meta.helm.sh/release-namespace" -}}
{{- if and $name (or (ne $name .root.Release.Name) (ne $namespace .root.Release.Namespace)) -}}
{{ printf "%s in namespace %s" $name $namespace }}
{{- end -}}
{{- end }}

{{- define "vcbatch.guardReleases" -}}
{{- $role := lookup "rbac.authorization.k8s.io/v1" "ClusterRole" "" "vcbatch-controllers" -}}
{{- with include "vcbatch.otherOwner" (dict "root" $ "object" $role) -}}
{{- fail (printf "vcbatch is installed in this cluster already, by the Helm release %s, and a cluster holds one. Upgrade or uninstall that release; for several schedulers, list them in its value `schedulers`" .) -}}
{{- end -}}
{{- end }}

{{- define "vcbatch.guardCrds" -}}
{{- $crd := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "jobs.batch.volcano.sh" -}}
{{- if .Values.crds.install -}}
{{- with include "vcbatch.otherOwner" (dict "root" $ "object" $crd) -}}
{{- fail (printf "the CRDs of Volcano's API belong to the Helm release %s. Where that is Volcano, docs/migrate-from-volcano.md says how to move without losing a job. To take them over (needed as well after an installation of vcbatch under another name):\n  kubectl get crd -o name | grep '\\.volcano\\.sh$' | xargs -I{} kubectl annotate --overwrite {} meta.helm.sh/release-name=%s meta.helm.sh/release-namespace=%s\nTo leave them to that release: --set crds.install=false" . $.Release.Name $.Release.Namespace) -}}
{{- end -}}
{{- else if and (not $crd) (lookup "v1" "Namespace" "" "kube-system") -}}
{{- fail "crds.install is false, and the cluster has no CRD jobs.batch.volcano.sh. Apply crds/ first (`vcbatch crds | kubectl apply --server-side -f -`), or set crds.install=true" -}}
{{- end -}}
{{- end }}
