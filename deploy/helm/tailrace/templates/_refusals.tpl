{{/* Values that cannot work together, each with what to do instead. What one value alone may be is in values.schema.json. */}}
{{- define "tailrace.refusals" -}}
{{- $attributes := .Values.presets.kubernetesAttributes -}}
{{- if ne .Values.mode "daemonset" -}}
{{- fail "mode: deployment needs the OTLP input, which the agent does not have yet: use mode: daemonset, or the OpenTelemetry Collector as a gateway" -}}
{{- end -}}
{{- include "tailrace.endpointRefusals" (default "" .Values.otlp.endpoint) -}}
{{- $texts := concat (values (default dict .Values.otlp.tls)) (values (default dict .Values.otlp.headers)) | join "\n" -}}
{{- include "tailrace.secretRefusals" (dict "root" . "what" "otlp" "text" $texts) -}}
{{- include "tailrace.listenRefusals" (dict "root" . "what" "admin.listen" "listen" .Values.admin.listen) -}}
{{- include "tailrace.nameRefusals" . -}}
{{- include "tailrace.containerRefusals" . -}}
{{- include "tailrace.probeRefusals" . -}}
{{- include "tailrace.volumeRefusals" . -}}
{{- if and .Values.configOverride .Values.config -}}
{{- fail "configOverride is the whole config, so that config would be ignored: set one of them" -}}
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
{{- range $name, $labels := dict "commonLabels" $.Values.commonLabels "podLabels" $.Values.podLabels "podMonitor.labels" $.Values.podMonitor.labels
  "serviceMonitor.labels" $.Values.serviceMonitor.labels "prometheusRule.labels" $.Values.prometheusRule.labels "dashboard.labels" $.Values.dashboard.labels -}}
{{- if hasKey (default dict $labels) $key -}}
{{- fail (printf "%s: the chart itself sets %s: leave it out, or see nameOverride" $name $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled (not .Values.service.enabled) -}}
{{- fail "serviceMonitor needs service.enabled: true; or use podMonitor" -}}
{{- end -}}
{{- end -}}

{{/* An endpoint of which nobody else would tell before the agent does, on every node. */}}
{{- define "tailrace.endpointRefusals" -}}
{{- if and . (not (contains "${" .)) -}}
{{- $port := regexFind "^https?://[^/]*:[0-9]+(/|$)" . | regexFind ":[0-9]+/?$" | trimAll ":/" -}}
{{- if or (not (regexMatch "^https?://(\\[[0-9a-fA-F:.]+\\]|[^/{}\\s:@?#\\[\\]]+)(:[0-9]+)?(/[^{}\\s]*)?$" .)) (gt (int $port) 65535) -}}
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

{{/* Files below /run/secrets that `text` names, alone on a line or as `${file:...}`, and that nothing mounts. */}}
{{- define "tailrace.secretRefusals" -}}
{{- $mounts := list -}}
{{- range .root.Values.secretFiles }}{{ $mounts = append $mounts (include "tailrace.secretPath" .) }}{{ end -}}
{{- range .root.Values.extraVolumeMounts }}{{ $mounts = append $mounts (trimSuffix "/" .mountPath) }}{{ end -}}
{{- range $named := regexFindAll "(?m)(^|_file: |\\$\\{file:)/run/secrets/[^}\\s]+" .text -1 -}}
{{- $file := regexFind "/run/secrets/.*" $named -}}
{{- $isMounted := false -}}
{{- range $mounts }}{{ $isMounted = or $isMounted (hasPrefix (printf "%s/" .) (printf "%s/" $file)) }}{{ end -}}
{{- if not $isMounted -}}
{{- fail (printf "%s names %s, which nothing mounts: list its Secret in secretFiles, as [{secretName: %s}]" $.what $file (regexReplaceAll "^/run/secrets/([^/]+).*" $file "${1}")) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* An address of the admin endpoint at which the kubelet's probes find no agent. */}}
{{- define "tailrace.listenRefusals" -}}
{{- $port := regexFind "[0-9]+$" .listen -}}
{{- $host := trimSuffix (printf ":%s" $port) .listen -}}
{{- if or (not (regexMatch "^[1-9][0-9]{0,4}$" $port)) (gt (int $port) 65535) -}}
{{- fail (printf "%s: %s has no port from 1 to 65535, at which probes and scrapes can ask: write 0.0.0.0:9464" .what .listen) -}}
{{- end -}}
{{- if regexMatch "^127\\.|^\\[[0:]*:0*1\\]$" $host -}}
{{- include "tailrace.loopbackRefusals" (dict "root" .root "what" .what "listen" .listen "host" (trimAll "[]" $host) "port" $port) -}}
{{- else if and (not .root.Values.hostNetwork) (not (regexMatch "^(0\\.0\\.0\\.0|\\[[0:]+\\])$" $host)) -}}
{{- fail (printf "%s: %s is one address, but each pod has its own: write 0.0.0.0:%s, or [::]:%s on a cluster with IPv6 alone" .what .listen $port $port) -}}
{{- end -}}
{{- end -}}

{{/* At loopback only a probe that runs in the container finds the agent, or, with hostNetwork, one that asks there itself. */}}
{{- define "tailrace.loopbackRefusals" -}}
{{- $values := .root.Values -}}
{{- range $name, $probe := $values.probes -}}
{{- $probe = default dict $probe -}}
{{- $request := $probe.httpGet | default $probe.tcpSocket | default dict -}}
{{- $asksThere := and $values.hostNetwork (eq (toString $request.host) $.host) -}}
{{- if and $probe (not (or $probe.exec $asksThere)) -}}
{{- $hint := ternary (printf "; or, with hostNetwork, probes.%s: {httpGet: {host: %q}}" $name $.host) "" $values.hostNetwork -}}
{{- fail (printf "%s: %s is loopback, but the kubelet's probes come to the pod's address, and no pod would get ready: write 0.0.0.0:%s, or [::]:%s on a cluster with IPv6 alone%s" $.what $.listen $.port $.port $hint) -}}
{{- end -}}
{{- end -}}
{{- if or $values.service.enabled $values.podMonitor.enabled -}}
{{- fail (printf "%s: %s is loopback, where no Service and no PodMonitor finds the agent: set service.enabled: false and podMonitor.enabled: false, or write 0.0.0.0:%s" .what .listen .port) -}}
{{- end -}}
{{- end -}}

{{/* What of the agent's config the chart's probes and mounts depend on. `what` is the value, `config` what it is. */}}
{{- define "tailrace.configRefusals" -}}
{{- $state := "/var/lib/tailrace" -}}
{{- if and (hasKey .config "data_dir") (ne (toString .config.data_dir | trimSuffix "/") $state) -}}
{{- fail (printf "%s.data_dir: the chart mounts the state directory at %s, and not at %s: leave it out; state.hostPath chooses the directory of the node" .what $state (toJson .config.data_dir)) -}}
{{- end -}}
{{- $admin := default dict .config.admin -}}
{{- $listen := toString (default "" $admin.listen) -}}
{{- if eq .what "config" -}}
{{- if and (hasKey .config "admin") (not (kindIs "map" .config.admin)) -}}
{{- fail "config.admin: the probes need the admin endpoint, so that it cannot be switched off: leave it out; admin.listen chooses its address" -}}
{{- end -}}
{{- if and (hasKey $admin "listen") (ne $listen .root.Values.admin.listen) -}}
{{- fail (printf "config.admin.listen: the probes and the Service ask where admin.listen is, at %s, and not at %s: set admin.listen instead" .root.Values.admin.listen (toJson $admin.listen)) -}}
{{- end -}}
{{- else -}}
{{- if or (hasPrefix "unix:" $listen) (ne (regexFind "[0-9]+$" $listen) (include "tailrace.adminPort" .root)) -}}
{{- fail (printf "%s needs admin: {listen: %q}, for the probes ask there: it has %q" .what .root.Values.admin.listen $listen) -}}
{{- end -}}
{{- include "tailrace.listenRefusals" (dict "root" .root "what" (printf "%s.admin.listen" .what) "listen" $listen) -}}
{{- end -}}
{{- end -}}

{{/* A shutdown that Kubernetes would cut short. */}}
{{- define "tailrace.graceRefusals" -}}
{{- $grace := toString (default "30s" (default dict .config.shutdown).grace) -}}
{{- if not (contains "${" $grace) -}}
{{- $seconds := 0.0 -}}
{{- range regexFindAll "[0-9.]+(ms|s|m|h|d)" $grace -1 -}}
{{- $unit := get (dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0 "d" 86400.0) (regexFind "[a-z]+$" .) -}}
{{- $seconds = addf $seconds (mulf (regexFind "^[0-9.]+" . | float64) $unit) -}}
{{- end -}}
{{- if ge $seconds (float64 .root.Values.terminationGracePeriodSeconds) -}}
{{- fail (printf "shutdown.grace: %s of the config is not less than terminationGracePeriodSeconds: %d: Kubernetes would kill the agent before it has stopped; raise terminationGracePeriodSeconds" $grace (int64 .root.Values.terminationGracePeriodSeconds)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Pipelines without an input, such as one whose name is nearly the preset's, and inputs that need a token or a role that the
presets do not bring. */}}
{{- define "tailrace.inputRefusals" -}}
{{- $values := .root.Values -}}
{{- $source := $values.presets.kubernetesAttributes.source -}}
{{- range $name, $pipeline := .config.pipelines -}}
{{- if not (regexMatch "^[a-z0-9_-]{1,64}$" $name) -}}
{{- fail (printf "pipeline %q: a name is 1 to 64 of a-z, 0-9, _ and -" $name) -}}
{{- end -}}
{{- $inputs := $pipeline.inputs | default (list $pipeline.input) -}}
{{- range $inputs -}}
{{- if not (get (default dict .) "type") -}}
{{- fail (printf "pipeline %s: an input needs a type: only pods and host get theirs from a preset, where it is enabled; add %s.pipelines.%s.input" $name $.what $name) -}}
{{- end -}}
{{- $metadata := toString (default "api" .metadata) -}}
{{- if and (eq (toString .type) "kubernetes") (has $metadata (list "api" "kubelet")) -}}
{{- if not (include "tailrace.needsToken" $.root) -}}
{{- fail (printf "pipeline %s: metadata: %s of its input needs the token that presets.podLogs and presets.kubernetesAttributes bring: enable both, or set metadata: path" $name $metadata) -}}
{{- end -}}
{{- if and $values.rbac.create (ne $metadata $source) -}}
{{- fail (printf "pipeline %s: metadata: %s of its input needs another role than presets.kubernetesAttributes.source: %s: set that to %s" $name $metadata $source $metadata) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
