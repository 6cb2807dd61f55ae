{{/* Everything is named as the release, that of the whole cluster too: two releases need two names. */}}

{{- define "ferromesh.selector" -}}
app.kubernetes.io/name: ferromesh
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "ferromesh.labels" -}}
{{ include "ferromesh.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "ferromesh.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}
