{{/* Values that cannot work together, each with what to do instead. What one value alone may be is in values.schema.json. */}}
{{- define "tailrace.refusals" -}}
{{- $attributes := .Values.presets.kubernetesAttributes -}}
{{- if ne .Values.mode "daemonset" -}}
{{- fail "mode: deployment needs the OTLP input, which the agent does not have yet: use mode: daemonset, or the OpenTelemetry Collector as a gateway" -}}
{{- end -}}
{{- include "tailrace.endpointRefusals" .Values.otlp.endpoint -}}
{{- include "tailrace.secretRefusals" . -}}
{{- if and .Values.configOverride .Values.config -}}
{{- fail "configOverride is the whole config, so that config would be ignored: set one of them" -}}
{{- end -}}
{{- if .Values.configOverride -}}
{{- $listen := tpl (dig "admin" "listen" "" .Values.configOverride) . -}}
{{- if ne (regexFind "[0-9]+$" $listen) (include "tailrace.adminPort" .) -}}
{{- fail (printf "configOverride needs admin: {listen: %q}, for the probes ask there: it has %q" .Values.admin.listen $listen) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.configMap.existingName (or .Values.configOverride .Values.config .Values.otlp.endpoint) -}}
{{- fail "configMap.existingName is the whole config, so that otlp.endpoint, config and configOverride would be ignored: leave them out" -}}
{{- end -}}
{{- if and (include "tailrace.needsToken" .) (eq $attributes.source "kubelet") -}}
{{- if semverCompare "<1.33.0-0" .Capabilities.KubeVersion.Version -}}
{{- fail (printf "presets.kubernetesAttributes.source: kubelet needs Kubernetes 1.33 (nodes/pods), this is %s: use source: api" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.state.chown.enabled (ne .Values.securityProfile "nonroot-group0") -}}
{{- fail "state.chown is for securityProfile: nonroot-group0: with another profile root could no longer write there" -}}
{{- end -}}
{{- if and .Values.networkPolicy.enabled .Values.hostNetwork -}}
{{- fail "networkPolicy has no effect on pods with hostNetwork: switch one of them off" -}}
{{- end -}}
{{- range $key := list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/version" "app.kubernetes.io/managed-by" "helm.sh/chart" -}}
{{- if or (hasKey $.Values.commonLabels $key) (hasKey $.Values.podLabels $key) -}}
{{- fail (printf "commonLabels, podLabels: the chart itself sets %s: leave it out, or see nameOverride" $key) -}}
{{- end -}}
{{- end -}}
{{- range $argument := .Values.extraArgs -}}
{{- if regexMatch "^(-c|--config|--data-dir)" $argument -}}
{{- fail (printf "extraArgs: the chart itself sets %s: use config, configOverride or state.hostPath" $argument) -}}
{{- end -}}
{{- if and $.Values.logLevel (hasPrefix "--log-level" $argument) -}}
{{- fail "logLevel and --log-level in extraArgs: set one of them" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled (not .Values.service.enabled) -}}
{{- fail "serviceMonitor needs service.enabled: true; or use podMonitor" -}}
{{- end -}}
{{- end -}}

{{/* An endpoint of which nobody else would tell before the agent does, on every node. */}}
{{- define "tailrace.endpointRefusals" -}}
{{- if and . (not (contains "${" .)) -}}
{{- if not (regexMatch "^https?://[^/{}\\s]+(/[^{}\\s]*)?$" .) -}}
{{- fail (printf "otlp.endpoint: %s is no URL: write http://HOST:PORT, or https://HOST:PORT for TLS, for gRPC too" .) -}}
{{- end -}}
{{- if hasSuffix "/v1/logs" (trimSuffix "/" .) -}}
{{- fail (printf "otlp.endpoint: the agent adds /v1/logs to %s by itself: leave it out" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A plan above the container's limit: the kernel would kill the agent before the plan is used up. `root`, and `config` as the
agent gets it. Amounts that the agent fills in (`${...}`) are not known here. */}}
{{- define "tailrace.memoryRefusals" -}}
{{- $planned := toString (dig "memory" "" (default dict .config.limits)) -}}
{{- $limit := dig "limits" "memory" "" (default dict .root.Values.resources) -}}
{{- if and $planned $limit (not (contains "${" $planned)) -}}
{{- if gt (include "tailrace.bytes" $planned | float64) (include "tailrace.bytes" $limit | float64) -}}
{{- fail (printf "limits.memory: %s of the config is more than resources.limits.memory: %s: the kernel would kill the agent; raise resources.limits.memory, best to twice limits.memory, or lower limits.memory" $planned (toString $limit)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Bytes of an amount as the agent writes it (96MiB, 96MB, 1 GiB) or as Kubernetes does (96Mi, 96M, 1e8, 128000m). */}}
{{- define "tailrace.bytes" -}}
{{- $text := kindIs "float64" . | ternary (printf "%.0f" (float64 .)) (toString .) | replace " " "" -}}
{{- $number := regexFind "^[0-9.]+([eE][+-]?[0-9]+)?" $text -}}
{{- $unit := trimPrefix $number $text | trimSuffix "B" | lower -}}
{{- if eq (trimPrefix $number $text) "m" }}{{ $unit = "milli" }}{{ end -}}
{{- $kilo := 1000.0 }}{{ $kibi := 1024.0 -}}
{{- $factors := dict "" 1.0 "milli" 0.001
  "k" $kilo "m" (mulf $kilo $kilo) "g" (mulf $kilo $kilo $kilo) "t" (mulf $kilo $kilo $kilo $kilo)
  "p" (mulf $kilo $kilo $kilo $kilo $kilo) "e" (mulf $kilo $kilo $kilo $kilo $kilo $kilo)
  "ki" $kibi "mi" (mulf $kibi $kibi) "gi" (mulf $kibi $kibi $kibi) "ti" (mulf $kibi $kibi $kibi $kibi)
  "pi" (mulf $kibi $kibi $kibi $kibi $kibi) "ei" (mulf $kibi $kibi $kibi $kibi $kibi $kibi) -}}
{{- if or (not $number) (not (hasKey $factors $unit)) -}}
{{- fail (printf "%s is no amount of memory: write 128Mi in resources, 128MiB in the config" $text) -}}
{{- end -}}
{{- printf "%.3f" (mulf (float64 $number) (get $factors $unit)) -}}
{{- end -}}

{{/* Files below /run/secrets that the values name and that nothing mounts. */}}
{{- define "tailrace.secretRefusals" -}}
{{- $mounts := list -}}
{{- range .Values.secretFiles }}{{ $mounts = append $mounts (include "tailrace.secretPath" .) }}{{ end -}}
{{- range .Values.extraVolumeMounts }}{{ $mounts = append $mounts .mountPath }}{{ end -}}
{{- $texts := concat (values .Values.otlp.tls) (values .Values.otlp.headers) | join "\n" -}}
{{- range $file := regexFindAll "/run/secrets/[^}\\s]+" $texts -1 -}}
{{- $isMounted := false -}}
{{- range $mounts }}{{ $isMounted = or $isMounted (hasPrefix (printf "%s/" .) (printf "%s/" $file)) }}{{ end -}}
{{- if not $isMounted -}}
{{- fail (printf "otlp names %s, which nothing mounts: list its Secret in secretFiles, as [{secretName: %s}]" $file (regexReplaceAll "^/run/secrets/([^/]+).*" $file "${1}")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
