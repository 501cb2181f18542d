{{/* Names, containers and volumes that the API server would refuse, or that would take the place of the chart's own. */}}

{{/* Names that are made of several values, and the account that gets the role. */}}
{{- define "tailrace.nameRefusals" -}}
{{- $name := include "tailrace.fullname" . -}}
{{- if not (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" $name) -}}
{{- fail (printf "%q is no name of an object: it takes lower-case letters, digits and dashes: see fullnameOverride and nameOverride" $name) -}}
{{- end -}}
{{- if and .Values.service.enabled (not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name)) -}}
{{- fail (printf "%q is no name of a Service, which begins with a letter and has no dots: set fullnameOverride, or service.enabled=false" $name) -}}
{{- end -}}
{{- if and .Values.rbac.create (include "tailrace.needsToken" .) (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) -}}
{{- fail "serviceAccount.create: false without a name would let every pod of the namespace that uses the account `default` read all pods: set serviceAccount.name, or rbac.create=false" -}}
{{- end -}}
{{- end -}}

{{/* Arguments, variables and containers. */}}
{{- define "tailrace.containerRefusals" -}}
{{- $logLevel := include "tailrace.logLevel" . -}}
{{- range $argument := .Values.extraArgs -}}
{{- if regexMatch "^(-c|--config|--data-dir|--input)" $argument -}}
{{- fail (printf "extraArgs: the chart itself sets %s: use config, configOverride or state.hostPath" $argument) -}}
{{- end -}}
{{- if and $logLevel (hasPrefix "--log-level" $argument) -}}
{{- fail "logLevel and --log-level in extraArgs: set one of them" -}}
{{- end -}}
{{- if and $.Values.configReload.enabled (hasPrefix "--watch" $argument) -}}
{{- fail "extraArgs: configReload.enabled sets --watch: leave it out" -}}
{{- end -}}
{{- end -}}
{{- $names := dict -}}
{{- range include "tailrace.env" . | fromYamlArray -}}
{{- if hasKey $names .name -}}
{{- fail (printf "extraEnv: %s is there twice, or the chart itself sets it: leave one out" .name) -}}
{{- end -}}
{{- if has .name (list "TAILRACE_CONFIG" "TAILRACE_DATA_DIR" "TAILRACE_INPUT") -}}
{{- fail (printf "extraEnv: %s is not for the chart: use config, configOverride or state.hostPath" .name) -}}
{{- end -}}
{{- if and $logLevel (eq .name "TAILRACE_LOG") -}}
{{- fail "logLevel and TAILRACE_LOG in extraEnv: set one of them" -}}
{{- end -}}
{{- $_ := set $names .name true -}}
{{- end -}}
{{- $names := dict "tailrace" true -}}
{{- if .Values.state.chown.enabled }}{{ $_ := set $names "chown-state" true }}{{ end -}}
{{- range concat (default list .Values.initContainers) (default list .Values.extraContainers) -}}
{{- if hasKey $names .name -}}
{{- fail (printf "initContainers, extraContainers: a container %s is there already: choose another name" .name) -}}
{{- end -}}
{{- $_ := set $names .name true -}}
{{- end -}}
{{- end -}}

{{/* Probes of what nothing in the pod serves. The kubelet knows a port by its name only in the agent's own container. */}}
{{- define "tailrace.probeRefusals" -}}
{{- $admin := include "tailrace.adminPort" . -}}
{{- $others := list -}}
{{- range concat (default list .Values.initContainers) (default list .Values.extraContainers) -}}
{{- range .ports }}{{ $others = append $others (toString .containerPort) }}{{ end -}}
{{- end -}}
{{- range $name, $probe := .Values.probes -}}
{{- range $kind, $request := pick (default dict $probe) "httpGet" "tcpSocket" "grpc" -}}
{{- with $request -}}
{{- $host := toString (default "" .host) -}}
{{- $isLoopback := regexMatch "^(127\\..*|::1|localhost)$" $host -}}
{{- if and $isLoopback (not $.Values.hostNetwork) -}}
{{- fail (printf "probes.%s.%s.host: without hostNetwork the kubelet would ask the node at %s, and not the pod: leave it out" $name $kind $host) -}}
{{- end -}}
{{- $port := default (ternary "admin" "" (eq $kind "httpGet")) .port -}}
{{- $names := ternary (list) (list "admin") (eq $kind "grpc") -}}
{{- $numbers := ternary $others (append $others $admin) (eq $kind "grpc") -}}
{{- $isServed := has (toString $port) (ternary $names $numbers (kindIs "string" $port)) -}}
{{- if not (or $isServed (and $host (not $isLoopback))) -}}
{{- fail (printf "probes.%s.%s: nothing in the pod answers at port %s, and no pod would get ready: write httpGet: {port: admin}, which is the port of admin.listen, %s, or tcpSocket: {port: admin}; what extraContainers serve is listed in their ports" $name $kind (toJson $port) $admin) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Volumes with one name, mounts at one place, and mounts of volumes that are not there. */}}
{{- define "tailrace.volumeRefusals" -}}
{{- $volumes := dict -}}
{{- range concat (include "tailrace.configVolumes" . | fromYamlArray) (include "tailrace.volumes" . | fromYamlArray) -}}
{{- if hasKey $volumes .name -}}
{{- fail (printf "extraVolumes: a volume %s is there already: choose another name" .name) -}}
{{- end -}}
{{- $_ := set $volumes .name true -}}
{{- end -}}
{{- $paths := dict -}}
{{- range concat (include "tailrace.configMounts" . | fromYamlArray) (include "tailrace.mounts" . | fromYamlArray) -}}
{{- $path := trimSuffix "/" .mountPath -}}
{{- if hasKey $paths $path -}}
{{- fail (printf "secretFiles, extraVolumeMounts: %s and %s are both mounted at %s: give one of them another mountPath" (get $paths $path) .name $path) -}}
{{- end -}}
{{- if not (hasKey $volumes .name) -}}
{{- fail (printf "extraVolumeMounts: there is no volume %s: add it to extraVolumes" .name) -}}
{{- end -}}
{{- $_ := set $paths $path .name -}}
{{- end -}}
{{- end -}}
