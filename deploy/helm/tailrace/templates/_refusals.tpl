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
