{{/* Security contexts: the profile's, with the values' merged over it. */}}

{{- define "tailrace.podSecurityContext" -}}
{{- $context := dict -}}
{{- if ne .Values.securityProfile "custom" -}}
{{- $context = dict "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- end -}}
{{- toYaml (mustMergeOverwrite $context (deepCopy (default dict .Values.podSecurityContext))) -}}
{{- end -}}

{{- define "tailrace.securityContext" -}}
{{- $context := dict -}}
{{- if ne .Values.securityProfile "custom" -}}
{{- $context = include "tailrace.noPrivileges" . | fromYaml -}}
{{- $root := eq .Values.securityProfile "root-dropped" -}}
{{- $_ := set $context "runAsUser" (ternary 0 65532 $root) -}}
{{- $_ := set $context "runAsGroup" 0 -}}
{{- $_ := set $context "runAsNonRoot" (not $root) -}}
{{- if and $root .Values.presets.hostLogs.enabled -}}
{{- $_ := set $context.capabilities "add" (list "DAC_READ_SEARCH") -}}
{{- end -}}
{{- end -}}
{{- toYaml (mustMergeOverwrite $context (deepCopy (default dict .Values.securityContext))) -}}
{{- end -}}

{{/* Without a capability root reads what root owns, which is what pod logs are, and nothing else. */}}
{{- define "tailrace.noPrivileges" -}}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
privileged: false
readOnlyRootFilesystem: true
{{- end -}}
