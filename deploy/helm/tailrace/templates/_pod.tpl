{{/* What is inside the agent's pod. */}}

{{- define "tailrace.env" -}}
- {name: K8S_NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
- {name: K8S_NODE_IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}
- {name: K8S_POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
- {name: K8S_POD_UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
- {name: K8S_NAMESPACE_NAME, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
{{- with .Values.clusterName }}
- {name: K8S_CLUSTER_NAME, value: {{ . | quote }}}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What the config may name: the config itself and the files of secrets. The same in the test's pod. */}}
{{- define "tailrace.configMounts" -}}
- {name: config, mountPath: /etc/tailrace, readOnly: true}
{{- range $index, $file := .Values.secretFiles }}
- {name: {{ include "tailrace.secretVolume" (dict "all" $.Values.secretFiles "index" $index) }}, mountPath: {{ include "tailrace.secretPath" $file | quote }}, readOnly: true}
{{- end }}
{{- end -}}

{{/* The volume of an entry of `secretFiles`: named after its Secret, or, where that gives no valid name or one that is taken, by
its place, too. A name that begins with `secret-` is never one of those that begin with `secret` and a digit. */}}
{{- define "tailrace.secretVolume" -}}
{{- $name := (index .all .index).secretName -}}
{{- $isTaken := false -}}
{{- range $index, $file := .all -}}
{{- $isTaken = or $isTaken (and (lt $index $.index) (eq $file.secretName $name)) -}}
{{- end -}}
{{- if and (not $isTaken) (le (len $name) 56) (not (contains "." $name)) -}}
{{- printf "secret-%s" $name -}}
{{- else -}}
{{- regexReplaceAll "-+$" (printf "secret%d-%s" .index (replace "." "-" $name) | trunc 63) "" -}}
{{- end -}}
{{- end -}}

{{/* Where an entry of `secretFiles` is mounted. */}}
{{- define "tailrace.secretPath" -}}
{{- default (printf "/run/secrets/%s" .secretName) .mountPath | trimSuffix "/" -}}
{{- end -}}

{{- define "tailrace.configVolumes" -}}
- name: config
  configMap: {name: {{ include "tailrace.configMapName" . | toYaml }}}
{{- range $index, $file := .Values.secretFiles }}
- name: {{ include "tailrace.secretVolume" (dict "all" $.Values.secretFiles "index" $index) }}
  secret:
    secretName: {{ toYaml .secretName }}
    # For root and for group 0.
    defaultMode: 0440
    {{- with .items }}
    items: {{- toYaml . | nindent 6 }}
    {{- end }}
{{- end }}
{{- end -}}

{{- define "tailrace.mounts" -}}
- {name: state, mountPath: /var/lib/tailrace}
{{- if .Values.presets.hostLogs.enabled }}
- {name: logs, mountPath: /var/log, readOnly: true}
{{- else if .Values.presets.podLogs.enabled }}
- {name: logs, mountPath: /var/log/pods, readOnly: true}
{{- end }}
{{- if and .Values.presets.podLogs.enabled .Values.presets.podLogs.dockerContainers }}
- {name: docker, mountPath: /var/lib/docker/containers, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "tailrace.volumes" -}}
- name: state
  hostPath: {path: {{ include "tailrace.stateHostPath" . | quote }}, type: DirectoryOrCreate}
{{- if .Values.presets.hostLogs.enabled }}
- name: logs
  hostPath: {path: /var/log, type: Directory}
{{- else if .Values.presets.podLogs.enabled }}
- name: logs
  hostPath: {path: /var/log/pods, type: Directory}
{{- end }}
{{- if and .Values.presets.podLogs.enabled .Values.presets.podLogs.dockerContainers }}
- name: docker
  hostPath: {path: /var/lib/docker/containers, type: Directory}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The node's directory for progress. An installation keeps its own, because an agent with an empty one sends everything
again that is still on the node: the directory of the DaemonSet that is installed wins over the default. */}}
{{- define "tailrace.stateHostPath" -}}
{{- if .Values.state.hostPath -}}
{{- .Values.state.hostPath -}}
{{- else -}}
{{- $path := printf "/var/lib/tailrace-kubernetes/%s/%s" .Release.Namespace (include "tailrace.fullname" .) -}}
{{- $installed := lookup "apps/v1" "DaemonSet" .Release.Namespace (include "tailrace.fullname" .) -}}
{{- range dig "spec" "template" "spec" "volumes" list $installed -}}
{{- if and (eq .name "state") .hostPath }}{{ $path = .hostPath.path }}{{ end -}}
{{- end -}}
{{- $path -}}
{{- end -}}
{{- end -}}

{{/* A probe: the chart's request, unless the values bring one, and what the values say of it. */}}
{{- define "tailrace.probe" -}}
{{- with .given -}}
{{- $probe := deepCopy . -}}
{{- if not (or .exec .tcpSocket .grpc) -}}
{{- $_ := set $probe "httpGet" (mustMergeOverwrite (dict "path" $.path "port" "admin") (default dict $probe.httpGet)) -}}
{{- end -}}
{{ $.name }}:
  {{- toYaml $probe | nindent 2 }}
{{- end -}}
{{- end -}}

{{/* Makes the state directory writable for group 0, whatever wrote there before. */}}
{{- define "tailrace.chownContainer" -}}
- name: chown-state
  image: {{ .Values.state.chown.image | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command: [sh, -c, "chown -R 65532:0 /var/lib/tailrace && chmod -R g+rwX /var/lib/tailrace"]
  securityContext:
    allowPrivilegeEscalation: false
    capabilities: {drop: [ALL], add: [CHOWN, FOWNER, DAC_OVERRIDE]}
    readOnlyRootFilesystem: true
    runAsUser: 0
    runAsGroup: 0
    runAsNonRoot: false
  resources:
    requests: {cpu: 10m, memory: 16Mi}
    limits: {memory: 64Mi}
  volumeMounts:
    - {name: state, mountPath: /var/lib/tailrace}
{{- end -}}

{{/* YAML takes a plain `off` for a boolean. */}}
{{- define "tailrace.logLevel" -}}
{{- if kindIs "bool" .Values.logLevel }}off{{ else }}{{ default "" .Values.logLevel }}{{ end -}}
{{- end -}}
