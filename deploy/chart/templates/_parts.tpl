{{- define "longshore.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- end }}

{{/* A=true,B=false */}}
{{- define "longshore.gates" -}}
{{- $gates := list }}
{{- range $name, $value := . }}
{{- $gates = append $gates (printf "%s=%t" $name $value) }}
{{- end }}
{{- join "," $gates }}
{{- end }}

{{- define "longshore.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "longshore.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{/* Where pods may run and how they get their image; takes (dict "root" $ "part" .Values.controllers) */}}
{{- define "longshore.placement" -}}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .part.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .part.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}
