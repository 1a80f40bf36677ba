{{/* Name of all objects: the name of the release, with "svc" in it. At most 40 characters, because other names are derived from it. */}}
{{- define "svc.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "svc.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "svc.fullname" .) -}}
{{- else -}}
{{- required "Set \"serviceAccount.name\": \"serviceAccount.create\" is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Names under which clients may reach the gateway, besides those of its Service: what the settings list, and the host names of Ingress and HTTPRoute. */}}
{{- define "svc.allowedHosts" -}}
{{- $names := list -}}
{{- with .Values.settings.SVC_ALLOWED_HOSTS -}}{{- $names = append $names . -}}{{- end -}}
{{- if and .Values.ingress.enabled .Values.ingress.host -}}{{- $names = append $names .Values.ingress.host -}}{{- end -}}
{{- if .Values.httpRoute.enabled -}}{{- $names = concat $names .Values.httpRoute.hostnames -}}{{- end -}}
{{- join "," $names -}}
{{- end -}}

{{/* The names of cluster-wide objects contain the namespace, because each namespace may have its own release. */}}
{{- define "svc.deviceClassRole" -}}
{{- printf "%s-%s-device-classes" (include "svc.fullname" .) .Release.Namespace -}}
{{- end -}}

{{/* The image of the gateway and of the init containers of slots, by digest if one is set. */}}
{{- define "svc.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "svc.chatUiImage" -}}
{{- with .Values.chatUi.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository .tag -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "svc.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Labels of a component, which also select its pods. Arguments: dict "root" $ "component" "gateway". */}}
{{- define "svc.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Name, namespace and labels. Arguments: dict "root" $ "component" "gateway" "name" "…". */}}
{{- define "svc.metadata" -}}
name: {{ .name }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "svc.selector" . | nindent 2 }}
  {{- include "svc.labels" .root | nindent 2 }}
{{- end -}}

{{/* The claim with the models: an existing one, or the one of the chart. */}}
{{- define "svc.modelsClaim" -}}
{{- if .Values.models.claim.create -}}
{{- .Values.models.claim.name | default (printf "%s-models" (include "svc.fullname" .)) -}}
{{- else -}}
{{- .Values.models.claim.name -}}
{{- end -}}
{{- end -}}
