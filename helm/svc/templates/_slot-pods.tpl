{{/* Environment of the gateway that says what the pods of all slots have in common. Each entry follows a line break. */}}
{{- define "svc.slotPodsEnv" -}}
{{- $names := list -}}
{{- range concat .Values.imagePullSecrets .Values.slotPods.imagePullSecrets -}}{{- $names = append $names .name -}}{{- end -}}
{{- if $names }}
- name: SVC_IMAGE_PULL_SECRETS
  value: {{ $names | uniq | join "," }}
{{- end }}
{{- $user := .Values.slotPods.user -}}
{{- /* Helm parses integers as floats and would print 1000680000 as 1.00068e+09. */ -}}
{{- if kindIs "float64" $user -}}{{- $user = printf "%.0f" $user -}}{{- end -}}
{{- $user = $user | toString -}}
{{- if and (not $user) (.Capabilities.APIVersions.Has "security.openshift.io/v1") -}}
{{- $user = "any" -}}
{{- end -}}
{{- if $user }}
- name: SVC_POD_USER
  value: {{ $user | quote }}
{{- end }}
{{- with .Values.models.hub }}
{{- with .endpoint }}
{{- if contains "@" . }}
{{- fail "Write \"models.hub.endpoint\" without credentials: everyone who may read Deployments would see them" }}
{{- end }}
- name: HF_ENDPOINT
  value: {{ . | quote }}
{{- end }}
{{- with .tokenSecretName }}
- name: HF_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: HF_TOKEN
      optional: true
- name: SVC_HF_TOKEN_SECRET
  value: {{ . }}
{{- end }}
{{- end }}
{{- with .Values.models.acceptedLicenses }}
- name: SVC_ACCEPTED_LICENSES
  value: {{ join "," . | quote }}
{{- end }}
{{- with .Values.slotPods.proxy }}
{{- if or (contains "@" .httpProxy) (contains "@" .httpsProxy) }}
{{- fail "Put proxy URLs with credentials into a Secret with the keys HTTP_PROXY and HTTPS_PROXY, and name it in \"slotPods.proxy.secretName\"" }}
{{- end }}
{{- with .secretName }}
- name: SVC_POD_PROXY_SECRET
  value: {{ . }}
{{- $secret := . }}
{{- range $name, $plain := dict "HTTP_PROXY" $.Values.slotPods.proxy.httpProxy "HTTPS_PROXY" $.Values.slotPods.proxy.httpsProxy }}
{{- if not $plain }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ $secret }}
      key: {{ $name }}
      optional: true
{{- end }}
{{- end }}
{{- end }}
{{- with .httpProxy }}
- name: HTTP_PROXY
  value: {{ . | quote }}
{{- end }}
{{- with .httpsProxy }}
- name: HTTPS_PROXY
  value: {{ . | quote }}
{{- end }}
{{- with .noProxy }}
- name: NO_PROXY
  value: {{ . | quote }}
{{- end }}
{{- end }}
{{- end -}}
