{{/* The agent's config: what the presets make, `config` merged over it, outputs merged over `otlp`. */}}
{{- define "tailrace.config" -}}
{{- include "tailrace.refusals" . -}}
{{- if .Values.configOverride -}}
{{- $text := tpl (toYaml .Values.configOverride) . -}}
{{- $config := fromYaml $text -}}
{{- with $config.Error -}}
{{- fail (printf "configOverride is no YAML once its templates are filled in: %s" .) -}}
{{- end -}}
{{- include "tailrace.configRefusals" (dict "root" . "what" "configOverride" "config" $config) -}}
{{- include "tailrace.wholeRefusals" (dict "root" . "what" "configOverride" "config" $config "text" $text) -}}
{{- $text -}}
{{- else -}}
{{- $preset := include "tailrace.presetConfig" . | fromYaml -}}
{{- $given := tpl (toYaml (default dict .Values.config)) . | fromYaml -}}
{{- with $given.Error -}}
{{- fail (printf "config is no YAML once its templates are filled in: %s" .) -}}
{{- end -}}
{{- include "tailrace.configRefusals" (dict "root" . "what" "config" "config" $given) -}}
{{- range $name, $pipeline := $given.pipelines -}}
{{- if not (kindIs "map" $pipeline) -}}
{{- fail (printf "config.pipelines.%s is no mapping: to be without the preset's pipeline switch the preset off" $name) -}}
{{- end -}}
{{- range $key := list "input" "inputs" "output" "outputs" -}}
{{- if not (get $pipeline $key) }}{{ $_ := unset $pipeline $key }}{{ end -}}
{{- end -}}
{{- /* `inputs` and an input of another type stand instead of the preset's. */ -}}
{{- with get (default dict $preset.pipelines) $name -}}
{{- if or (hasKey $pipeline "inputs") (ne .input.type (dig "input" "type" .input.type $pipeline)) -}}
{{- $_ := unset . "input" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $config := mustMergeOverwrite $preset $given -}}
{{- if not $config.pipelines -}}
{{- fail "nothing to read: enable presets.podLogs or presets.hostLogs, or add a pipeline with config.pipelines" -}}
{{- end -}}
{{- range $name, $pipeline := $config.pipelines -}}
{{- if hasKey $pipeline "outputs" -}}
{{- $outputs := list -}}
{{- range $pipeline.outputs -}}
{{- $outputs = append $outputs (include "tailrace.output" (dict "root" $ "pipeline" $name "given" .) | fromYaml) -}}
{{- end -}}
{{- $_ := set $pipeline "outputs" $outputs -}}
{{- else -}}
{{- $_ := set $pipeline "output" (include "tailrace.output" (dict "root" $ "pipeline" $name "given" $pipeline.output) | fromYaml) -}}
{{- end -}}
{{- end -}}
{{- include "tailrace.wholeRefusals" (dict "root" . "what" "config" "config" $config "text" (toYaml $config)) -}}
{{- toYaml $config -}}
{{- end -}}
{{- end -}}

{{/* What is refused of the config as the agent gets it. `what` is the value that it comes from, `text` what `config` is as YAML. */}}
{{- define "tailrace.wholeRefusals" -}}
{{- include "tailrace.inputRefusals" . -}}
{{- include "tailrace.memoryRefusals" . -}}
{{- include "tailrace.graceRefusals" . -}}
{{- include "tailrace.secretRefusals" . -}}
{{- end -}}

{{/* An output as the config has it, merged over `otlp`. One with a server of its own stands alone, or that server
would get headers that are meant for another. */}}
{{- define "tailrace.output" -}}
{{- $output := default dict .given -}}
{{- $type := toString (default "otlp" $output.type) -}}
{{- if eq $type "otlp" -}}
{{- $chart := dict "type" "otlp" -}}
{{- if not (or $output.endpoint $output.logs_endpoint) -}}
{{- $chart = include "tailrace.otlpOutput" .root | fromYaml -}}
{{- end -}}
{{- $output = mustMergeOverwrite $chart $output -}}
{{- if not (or $output.endpoint $output.logs_endpoint) -}}
{{- fail (printf "pipeline %s has nowhere to send to: set otlp.endpoint, such as --set otlp.endpoint=http://collector:4318" .pipeline) -}}
{{- end -}}
{{- end -}}
{{- toYaml $output -}}
{{- end -}}

{{- define "tailrace.presetConfig" -}}
data_dir: /var/lib/tailrace
admin: {listen: {{ .Values.admin.listen | quote }}}
resource:
  k8s.cluster.name: ${K8S_CLUSTER_NAME:-}
  k8s.node.name: ${K8S_NODE_NAME}
workers: 1
pipelines:
  {{- if .Values.presets.podLogs.enabled }}
  pods:
    input: {{- include "tailrace.podsInput" . | nindent 6 }}
    batch: {max_bytes: 512KiB}
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
{{- include "tailrace.given" (dict "include" (deepCopy (default dict .Values.presets.podLogs.include)) "exclude" (deepCopy (default dict .Values.presets.podLogs.exclude))) }}
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
endpoint: {{ default "" .Values.otlp.endpoint | quote }}
protocol: {{ .Values.otlp.protocol }}
{{- with .Values.otlp.headers }}
headers: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.otlp.tls }}
tls: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
