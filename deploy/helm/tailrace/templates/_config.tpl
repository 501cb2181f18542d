{{/* The agent's config: what the presets make, `config` merged over it, an output where none is given. */}}
{{- define "tailrace.config" -}}
{{- include "tailrace.refusals" . -}}
{{- if .Values.configOverride -}}
{{- tpl (toYaml .Values.configOverride) . -}}
{{- else -}}
{{- $preset := include "tailrace.presetConfig" . | fromYaml -}}
{{- $config := mustMergeOverwrite $preset (tpl (toYaml .Values.config) . | fromYaml) -}}
{{- if not $config.pipelines -}}
{{- fail "nothing to read: enable presets.podLogs or presets.hostLogs, or add a pipeline with config.pipelines" -}}
{{- end -}}
{{- range $name, $pipeline := $config.pipelines -}}
{{- /* `inputs` and `outputs` of the user stand instead of the preset's one. */ -}}
{{- if hasKey $pipeline "inputs" }}{{ $_ := unset $pipeline "input" }}{{ end -}}
{{- if hasKey $pipeline "outputs" -}}
{{- $_ := unset $pipeline "output" -}}
{{- else if not (hasKey $pipeline "output") -}}
{{- $_ := set $pipeline "output" (include "tailrace.otlpOutput" $ | fromYaml) -}}
{{- end -}}
{{- with $pipeline.output -}}
{{- if and (eq (toString .type) "otlp") (not .endpoint) (not .logs_endpoint) -}}
{{- fail (printf "pipeline %s has nowhere to send to: set otlp.endpoint, such as --set otlp.endpoint=http://collector:4318" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}
{{- end -}}

{{- define "tailrace.presetConfig" -}}
data_dir: /var/lib/tailrace
admin: {listen: {{ .Values.admin.listen | quote }}}
resource:
  k8s.cluster.name: ${K8S_CLUSTER_NAME:-}
  k8s.node.name: ${K8S_NODE_NAME}
pipelines:
  {{- if .Values.presets.podLogs.enabled }}
  pods:
    input: {{- include "tailrace.podsInput" . | nindent 6 }}
  {{- end }}
  {{- if .Values.presets.hostLogs.enabled }}
  host:
    input:
      type: file
      include: {{- toYaml .Values.presets.hostLogs.include | nindent 8 }}
  {{- end }}
{{- end -}}

{{- define "tailrace.podsInput" -}}
{{- $attributes := .Values.presets.kubernetesAttributes -}}
type: kubernetes
{{- include "tailrace.given" (dict "include" (deepCopy .Values.presets.podLogs.include) "exclude" (deepCopy .Values.presets.podLogs.exclude)) }}
{{- if not $attributes.enabled }}
metadata: path
{{- else }}
metadata: {{ $attributes.source }}
{{- include "tailrace.given" (dict "labels" $attributes.labels "annotations" $attributes.annotations) }}
{{- if $attributes.serviceFromLabels }}
service_from_labels: true
{{- end }}
{{- end }}
{{- end -}}

{{/* Those of the options that are not empty, so that a config shows what was chosen. */}}
{{- define "tailrace.given" -}}
{{- range $name, $value := . -}}
{{- if kindIs "map" $value -}}
{{- range $key, $list := $value }}{{ if not $list }}{{ $_ := unset $value $key }}{{ end }}{{ end -}}
{{- end -}}
{{- with $value }}
{{ $name }}: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
{{- end -}}

{{- define "tailrace.otlpOutput" -}}
type: otlp
endpoint: {{ .Values.otlp.endpoint | quote }}
protocol: {{ .Values.otlp.protocol }}
{{- with .Values.otlp.headers }}
headers: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.otlp.tls }}
tls: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
