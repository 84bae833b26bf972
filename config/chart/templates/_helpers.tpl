{{- define "zuber.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "zuber.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "zuber.labels" -}}
{{ include "zuber.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "zuber.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "zuber.fullname" .) -}}
{{- end -}}

{{- define "zuber.subject" -}}
- kind: ServiceAccount
  name: {{ include "zuber.serviceAccount" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{- define "zuber.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .tag }}
{{- end -}}
{{- end -}}

{{- /* The file that --config names. Credentials are files of their own. */ -}}
{{- define "zuber.config" -}}
{{- $backends := list -}}
{{- range .Values.backends -}}
{{- $entry := dict "name" .name "provider" .provider -}}
{{- if .credentials -}}
{{- $file := printf "/etc/zuber/credentials/%s/%s" .name (include "zuber.credentialsKey" .) -}}
{{- $_ := set $entry (ternary "tokenFile" "keyFile" (eq .provider "cloudscale")) $file -}}
{{- end -}}
{{- if .federation -}}
{{- $_ := set $entry "serviceAccountEmail" .federation.serviceAccountEmail -}}
{{- $_ := set $entry "projectID" .federation.projectID -}}
{{- $_ := set $entry "federatedTokenFile" (printf "/etc/zuber/credentials/%s/token" .name) -}}
{{- end -}}
{{- $backends = append $backends (merge $entry (.settings | default dict)) -}}
{{- end -}}
{{ dict "backends" $backends | toYaml }}
{{- end -}}

{{- define "zuber.credentialsKey" -}}
{{- .credentials.key | default (ternary "token" "key.json" (eq .provider "cloudscale")) -}}
{{- end -}}

{{- define "zuber.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}
