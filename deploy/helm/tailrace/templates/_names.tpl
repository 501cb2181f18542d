{{/* Names, labels and facts that several templates use. Names are written with toYaml, which quotes those that YAML would
take for a number or a boolean. */}}

{{- define "tailrace.name" -}}
{{- regexReplaceAll "[-._]+$" (default .Chart.Name .Values.nameOverride | trunc 63) "" -}}
{{- end -}}

{{/* At most 52 characters: the label of a revision adds a dash and ten digits. */}}
{{- define "tailrace.fullname" -}}
{{- $name := include "tailrace.name" . -}}
{{- $full := printf "%s-%s" .Release.Name $name -}}
{{- if .Values.fullnameOverride -}}
{{- $full = .Values.fullnameOverride -}}
{{- else if contains $name .Release.Name -}}
{{- $full = .Release.Name -}}
{{- end -}}
{{- regexReplaceAll "[-.]+$" (trunc 52 $full) "" -}}
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
  {{- with mustMergeOverwrite (dict) (default dict .root.Values.commonLabels) (default dict .labels) }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with mustMergeOverwrite (dict) (default dict .root.Values.commonAnnotations) (default dict .annotations) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Never to be changed: a DaemonSet's selector is immutable, so that an upgrade would fail. */}}
{{- define "tailrace.selectorLabels" -}}
app.kubernetes.io/name: {{ include "tailrace.name" . | toYaml }}
app.kubernetes.io/instance: {{ .Release.Name | toYaml }}
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
{{- $registry := default $image.registry (default dict .Values.global).imageRegistry -}}
{{- with $registry }}{{ trimSuffix "/" . }}/{{ end }}{{ $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default .Chart.AppVersion $image.tag }}{{ end -}}
{{- end -}}

{{/* `true` when the agent asks the Kubernetes API or the kubelet, and so needs a token. */}}
{{- define "tailrace.needsToken" -}}
{{- if and .Values.presets.podLogs.enabled .Values.presets.kubernetesAttributes.enabled -}}true{{- end -}}
{{- end -}}

{{- define "tailrace.adminPort" -}}
{{- regexFind "[0-9]+$" .Values.admin.listen -}}
{{- end -}}

{{/* Where the agent is asked inside its own pod. */}}
{{- define "tailrace.adminInside" -}}
{{- regexReplaceAll "^(0\\.0\\.0\\.0|\\[[0:]+\\]):" .Values.admin.listen "127.0.0.1:" -}}
{{- end -}}

{{- define "tailrace.configMapName" -}}
{{- default (include "tailrace.fullname" .) .Values.configMap.existingName -}}
{{- end -}}

{{- define "tailrace.configPath" -}}
/etc/tailrace/{{ if .Values.configMap.existingName }}{{ .Values.configMap.key }}{{ else }}tailrace.yaml{{ end }}
{{- end -}}
