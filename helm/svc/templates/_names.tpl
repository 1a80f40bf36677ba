{{/* Name of all objects, at most 63 characters: it is also the name of a Service. */}}
{{- define "svc.fullname" -}}
{{- $chart := .Values.nameOverride | default .Chart.Name -}}
{{- $release := .Release.Name | replace "." "-" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $chart $release -}}
{{- $release | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" $release $chart | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The name of all objects with a suffix, at most 63 characters. Arguments: dict "root" $ "suffix" "models". */}}
{{- define "svc.derivedName" -}}
{{- $room := int (sub 62 (len .suffix)) -}}
{{- printf "%s-%s" (include "svc.fullname" .root | trunc $room | trimSuffix "-") .suffix -}}
{{- end -}}

{{- define "svc.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "svc.fullname" .) -}}
{{- else -}}
{{- required "Set \"serviceAccount.name\": \"serviceAccount.create\" is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Whether management has a port of its own: "true" or nothing. Values of a release before it had one do not say. */}}
{{- define "svc.separateManagement" -}}
{{- if ne (toString .Values.service.separateManagement) "false" -}}true{{- end -}}
{{- end -}}

{{/* The Service with the management API, and the name of its port. */}}
{{- define "svc.managementService" -}}
{{- if include "svc.separateManagement" . -}}{{- include "svc.derivedName" (dict "root" . "suffix" "management") -}}{{- else -}}{{- include "svc.fullname" . -}}{{- end -}}
{{- end -}}
{{- define "svc.managementPort" -}}
{{- ternary "management" "http" (eq (include "svc.separateManagement" .) "true") -}}
{{- end -}}

{{/* The hosts of the Ingress: a list of {host, paths} as JSON, within an object, because a template can only return text. */}}
{{- define "svc.ingressHosts" -}}
{{- $hosts := list -}}
{{- with .Values.ingress.host -}}{{- $hosts = append $hosts (dict "host" .) -}}{{- end -}}
{{- dict "hosts" (concat $hosts .Values.ingress.hosts) | toJson -}}
{{- end -}}

{{/* Names under which clients may reach the gateway, besides those of its Service: what the settings list, and the host names of Ingress and HTTPRoute. */}}
{{- define "svc.allowedHosts" -}}
{{- $names := list -}}
{{- with .Values.settings.SVC_ALLOWED_HOSTS -}}{{- $names = append $names . -}}{{- end -}}
{{- if .Values.ingress.enabled -}}
{{- range (include "svc.ingressHosts" . | fromJson).hosts -}}{{- $names = append $names .host -}}{{- end -}}
{{- end -}}
{{- if .Values.httpRoute.enabled -}}{{- $names = concat $names .Values.httpRoute.hostnames -}}{{- end -}}
{{- uniq $names | join "," -}}
{{- end -}}

{{/* The names of cluster-wide objects contain the namespace, because each namespace may have its own release. */}}
{{- define "svc.deviceClassRole" -}}
{{- printf "%s-%s-device-classes" (include "svc.fullname" .) .Release.Namespace -}}
{{- end -}}

{{- define "svc.definitionRole" -}}
{{- printf "%s-%s-definition" (include "svc.fullname" .) .Release.Namespace -}}
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

{{/* Labels of a component, which also select its pods. They never change, not even with values. Arguments: dict "root" $ "component" "gateway". */}}
{{- define "svc.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* All labels of an object. Arguments: dict "root" $ "component" "gateway", and "labels" with labels of this object alone. */}}
{{- define "svc.labels" -}}
{{- range $value, $given := dict "commonLabels" .root.Values.commonLabels "podLabels" .root.Values.podLabels -}}
{{- range $key, $_ := $given -}}
{{- if or (has $key (list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component")) (hasPrefix "inference.svc.dev/" $key) -}}
{{- fail (printf "Remove %q from %q: the chart and the service select pods by this label" $key $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $own := include "svc.selector" . | fromYaml -}}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") -}}
{{- $_ := set $own "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- merge $own (deepCopy (.labels | default dict)) (deepCopy .root.Values.commonLabels) | toYaml -}}
{{- end -}}

{{/* Name, namespace, labels and annotations. Arguments: dict "root" $ "component" "gateway" "name" "…"; optionally "labels", "annotations", "clusterWide" true. */}}
{{- define "svc.metadata" -}}
name: {{ .name }}
{{- if not .clusterWide }}
namespace: {{ .root.Release.Namespace }}
{{- end }}
labels:
  {{- include "svc.labels" . | nindent 2 }}
{{- with merge (deepCopy (.annotations | default dict)) (deepCopy .root.Values.commonAnnotations) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Labels and annotations of a pod template. Arguments: dict "root" $ "component" "gateway"; optionally "labels", "annotations". */}}
{{- define "svc.podMetadata" -}}
labels:
  {{- merge (include "svc.selector" . | fromYaml) (deepCopy (.labels | default dict)) (deepCopy .root.Values.commonLabels) | toYaml | nindent 2 }}
{{- with merge (deepCopy (.annotations | default dict)) (deepCopy .root.Values.commonAnnotations) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The claim with the models: an existing one, or the one of the chart. */}}
{{- define "svc.modelsClaim" -}}
{{- if .Values.models.claim.create -}}
{{- .Values.models.claim.name | default (include "svc.derivedName" (dict "root" . "suffix" "models")) -}}
{{- else -}}
{{- .Values.models.claim.name -}}
{{- end -}}
{{- end -}}

{{/* The Secret with the tokens of the API: an existing one, or the one of the chart. */}}
{{- define "svc.tokensSecret" -}}
{{- .Values.auth.tokensSecret.name | default (include "svc.derivedName" (dict "root" . "suffix" "tokens")) -}}
{{- end -}}

{{/* Environment of the gateway that says whether and how clients authenticate. Each entry follows a line break. */}}
{{- define "svc.authEnv" -}}
{{- with .Values.auth }}
- name: SVC_TOKENS_SECRET
  value: {{ include "svc.tokensSecret" $ }}
{{- if .enabled }}
- name: SVC_AUTH_ENABLED
  value: "1"
{{- end }}
{{- if and .enabled .trustedProxies (not .proxySecret.name) }}
{{- fail "Set \"auth.proxySecret.name\" too: otherwise every pod at an address of \"auth.trustedProxies\" could send X-Forwarded-Email and be an administrator" }}
{{- end }}
{{- if and .enabled .trustedProxies (not .identityRoles) }}
{{- fail "Set \"auth.identityRoles\" too, for example to {\"*@example.com\": v1-only, anna@example.com: admin}: whoever \"auth.trustedProxies\" forward has only the scope that is written there" }}
{{- end }}
{{- $roles := list }}
{{- range $identity, $scope := .identityRoles }}
{{- $roles = append $roles (printf "%s=%s" $identity $scope) }}
{{- end }}
- name: SVC_IDENTITY_ROLES
  value: {{ join "," $roles | quote }}
{{- with .trustedProxies }}
- name: SVC_TRUSTED_PROXIES
  value: {{ join "," . | quote }}
{{- end }}
{{- with .proxySecret }}
{{- if .name }}
- name: SVC_PROXY_SECRET
  valueFrom:
    secretKeyRef:
      name: {{ .name }}
      key: {{ .key }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Environment of the gateway that names the server with the counts of all gateways, or nothing. Each entry follows a line break. */}}
{{- define "svc.limitsEnv" -}}
{{- with .Values.limits }}
{{- $secret := .urlSecret | default dict }}
{{- if and .url $secret.name }}
{{- fail "Set either \"limits.url\" or \"limits.urlSecret.name\", not both" }}
{{- end }}
{{- if .url }}
- name: SVC_LIMITS_URL
  value: {{ .url | quote }}
{{- else if $secret.name }}
- name: SVC_LIMITS_URL
  valueFrom:
    secretKeyRef:
      name: {{ $secret.name }}
      key: {{ $secret.key | default "url" }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The security context of the gateway's pods. OpenShift chooses users and groups itself and refuses the default ones; others are an intention. */}}
{{- define "svc.podSecurityContext" -}}
{{- $context := .Values.podSecurityContext -}}
{{- if .Capabilities.APIVersions.Has "security.openshift.io/v1" -}}
{{- range $key := list "runAsUser" "runAsGroup" "fsGroup" -}}
{{- if eq (get $context $key | toString) "65532" -}}{{- $context = omit $context $key -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- with $context -}}{{- toYaml . -}}{{- end -}}
{{- end -}}
