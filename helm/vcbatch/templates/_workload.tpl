{{/*
The Deployment of a program and its PodDisruptionBudget. Takes a dict:
  root       the root context
  name       of the objects
  component  controllers, scheduler or webhooks
  scheduler  name of the scheduler, where the program is one
  settings   values of the program
  args       command-line arguments
  ports      name to number
  files      mount path to a volume without its name, e.g. {configMap: {name: x}}
  checksum   of the configuration, where a change of it is to restart the pods
*/}}
{{- define "vcbatch.workload" -}}
{{- $root := .root -}}
{{- $values := $root.Values -}}
{{- $settings := .settings -}}
{{- $selector := include "vcbatch.selectorLabels" (dict "root" $root "component" .component "scheduler" .scheduler) -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "vcbatch.componentLabels" (dict "root" $root "component" .component) | nindent 4 }}
    {{- with .scheduler }}
    vcbatch.dev/scheduler: {{ . }}
    {{- end }}
spec:
  replicas: {{ $settings.replicas }}
  revisionHistoryLimit: 5
  # A new replica is ready before an old one ends.
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  selector:
    matchLabels:
      {{- $selector | nindent 6 }}
  template:
    metadata:
      labels:
        {{- merge (fromYaml $selector) $settings.podLabels $values.podLabels $values.commonLabels | toYaml | nindent 8 }}
      annotations:
        kubectl.kubernetes.io/default-container: {{ .component }}
        {{- with merge (dict) $settings.podAnnotations $values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- with .checksum }}
        checksum/configuration: {{ . }}
        {{- end }}
    spec:
      serviceAccountName: vcbatch-{{ .component }}
      automountServiceAccountToken: true
      enableServiceLinks: false
      {{- with include "vcbatch.pullSecrets" $root }}
      {{- . | nindent 6 }}
      {{- end }}
      {{- with $settings.priorityClassName | default $values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with $values.podSecurityContext }}
      securityContext:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      terminationGracePeriodSeconds: {{ $settings.terminationGracePeriodSeconds }}
      {{- with $settings.nodeSelector | default $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $settings.tolerations | default $values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $settings.affinity | default $values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $settings.topologySpreadConstraints }}
      topologySpreadConstraints:
        {{- range . }}
        {{- $selects := dict "labelSelector" (dict "matchLabels" (fromYaml $selector)) "matchLabelKeys" (list "pod-template-hash") }}
        - {{- ternary . (merge (deepCopy .) $selects) (hasKey . "labelSelector") | toYaml | nindent 10 }}
        {{- end }}
      {{- end }}
      containers:
        - name: {{ .component }}
          image: {{ include "vcbatch.image" $root | quote }}
          imagePullPolicy: {{ $values.image.pullPolicy }}
          args:
            - {{ .component }}
            {{- range concat .args $settings.extraArgs }}
            - {{ . | quote }}
            {{- end }}
          {{- with $settings.extraEnv }}
          env:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            {{- range $name, $number := .ports }}
            - name: {{ $name }}
              containerPort: {{ $number }}
              protocol: TCP
            {{- end }}
          startupProbe:
            httpGet: {path: /livez, port: health}
            periodSeconds: 1
            timeoutSeconds: 5
            failureThreshold: 120
          livenessProbe:
            httpGet: {path: /livez, port: health}
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 3
          readinessProbe:
            httpGet: {path: /readyz, port: health}
            periodSeconds: 5
            timeoutSeconds: 5
            failureThreshold: 2
          {{- with $settings.resources }}
          resources:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with $values.securityContext }}
          securityContext:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          volumeMounts:
            - name: tmp
              mountPath: /tmp
            {{- range $path, $_ := .files }}
            - name: {{ base $path }}
              mountPath: {{ $path }}
              readOnly: true
            {{- end }}
            {{- with $settings.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - name: tmp
          emptyDir: {sizeLimit: 64Mi}
        {{- range $path, $volume := .files }}
        - name: {{ base $path }}
          {{- toYaml $volume | nindent 10 }}
        {{- end }}
        {{- with $settings.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- if and $settings.podDisruptionBudget.enabled (gt (int $settings.replicas) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "vcbatch.componentLabels" (dict "root" $root "component" .component) | nindent 4 }}
spec:
  maxUnavailable: {{ $settings.podDisruptionBudget.maxUnavailable }}
  # A replica that isn't ready does no work: it never keeps a node from being drained.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- $selector | nindent 6 }}
{{- end }}
{{- end }}

{{/* A ConfigMap with one file. Takes a dict: root, name, component, key, text. */}}
{{- define "vcbatch.configMap" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "vcbatch.componentLabels" (dict "root" .root "component" .component) | nindent 4 }}
data:
  {{ .key }}: |
    {{- .text | nindent 4 }}
{{- end }}

{{/* The flags of leader election. Takes the root context; a YAML list. */}}
{{- define "vcbatch.electionArgs" -}}
- --leader-elect=true
- --leader-elect-resource-namespace={{ .Release.Namespace }}
- --leader-elect-lease-duration={{ .Values.leaderElection.leaseDuration }}
- --leader-elect-renew-deadline={{ .Values.leaderElection.renewDeadline }}
- --leader-elect-retry-period={{ .Values.leaderElection.retryPeriod }}
{{- end }}
