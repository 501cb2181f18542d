{{/* Names, labels and facts that several templates use. */}}

{{- define "tailrace.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "tailrace.fullname" -}}
{{- $name := include "tailrace.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "tailrace.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "tailrace.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* The labels and annotations of an object: the chart's, the release's common ones and `extra`, which wins. */}}
{{- define "tailrace.metadata" -}}
labels:
  {{- include "tailrace.labels" .root | nindent 2 }}
  {{- with merge (dict) (default dict .labels) .root.Values.commonLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (default dict .annotations) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Never to be changed: a DaemonSet's selector is immutable, so that an upgrade would fail. */}}
{{- define "tailrace.selectorLabels" -}}
app.kubernetes.io/name: {{ include "tailrace.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "tailrace.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "tailrace.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "tailrace.image" -}}
{{- $image := .Values.image -}}
{{- $registry := default $image.registry .Values.global.imageRegistry -}}
{{- $reference := ternary (printf "@%s" $image.digest) (printf ":%s" (default .Chart.AppVersion $image.tag)) (ne $image.digest "") -}}
{{- if $registry }}{{ $registry }}/{{ end }}{{ $image.repository }}{{ $reference -}}
{{- end -}}

{{/* `true` when the agent asks the Kubernetes API or the kubelet, and so needs a token. */}}
{{- define "tailrace.needsToken" -}}
{{- if and .Values.presets.podLogs.enabled .Values.presets.kubernetesAttributes.enabled -}}true{{- end -}}
{{- end -}}

{{- define "tailrace.adminPort" -}}
{{- regexFind "[0-9]+$" .Values.admin.listen -}}
{{- end -}}

{{- define "tailrace.configMapName" -}}
{{- default (include "tailrace.fullname" .) .Values.configMap.existingName -}}
{{- end -}}

{{- define "tailrace.configPath" -}}
/etc/tailrace/{{ ternary .Values.configMap.key "tailrace.yaml" (ne .Values.configMap.existingName "") }}
{{- end -}}
