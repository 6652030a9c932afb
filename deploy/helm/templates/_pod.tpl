{{/* What every pod of the site has: image, settings, secrets as files, folders. “chatsite.container” and
     “chatsite.pod” get a dict: `root` is the chart's context, `files` whether the folder of the files is needed. */}}

{{- define "chatsite.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "chatsite.labels" -}}
app.kubernetes.io/name: chatsite
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "chatsite.container" -}}
image: {{ include "chatsite.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
env:
  - {name: CHATSITE_ALLOWED_HOSTS, value: {{ .root.Values.host | quote }}}
  - {name: CHATSITE_TRUSTED_ORIGINS, value: {{ printf "https://%s" .root.Values.host | quote }}}
  - {name: CHATSITE_TRUSTED_PROXIES, value: {{ join "," .root.Values.trustedProxies | quote }}}
  - {name: CHATSITE_HTTPS, value: "1"}
  - {name: CHATSITE_GRACE_SECONDS, value: "25"}
  {{- if and .files .root.Values.files.enabled }}
  - {name: CHATSITE_MEDIA_ROOT, value: /srv/files}
  {{- end }}
  {{- if and .files .root.Values.erased.existingClaim }}
  - {name: CHATSITE_ERASED_LIST, value: /srv/erased/erased.jsonl}
  {{- else if and .files .root.Values.files.enabled }}
  - {name: CHATSITE_ERASED_LIST, value: /srv/files/erased.jsonl}
  {{- end }}
  - {name: DATABASE_URL_FILE, value: /run/secrets/chatsite/database-url}
  - {name: CHATSITE_SECRET_KEY_FILE, value: /run/secrets/chatsite/secret-key}
  {{- $names := dict
    "database-direct-url" "DATABASE_DIRECT_URL"
    "metrics-token" "CHATSITE_METRICS_TOKEN"
    "model-key" "OPENAI_API_KEY"
    "oidc-client-secret" "OIDC_CLIENT_SECRET"
    "redis-url" "REDIS_URL"
    "rerank-key" "RERANK_API_KEY"
    "s3-access-key" "CHATSITE_S3_ACCESS_KEY"
    "s3-secret-key" "CHATSITE_S3_SECRET_KEY" }}
  {{- range .root.Values.secrets }}
  - {name: {{ get $names . }}_FILE, value: /run/secrets/chatsite/{{ . }}}
  {{- end }}
  {{- range $name, $value := .root.Values.settings }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
  {{- end }}
volumeMounts:
  - {name: secrets, mountPath: /run/secrets/chatsite, readOnly: true}
  - {name: data, mountPath: /var/lib/chatsite}
  - {name: tmp, mountPath: /tmp}
  {{- if and .files .root.Values.files.enabled }}
  - {name: files, mountPath: /srv/files}
  {{- end }}
  {{- if and .files .root.Values.erased.existingClaim }}
  - {name: erased, mountPath: /srv/erased}
  {{- end }}
{{- end }}

{{- define "chatsite.pod" -}}
# The service of a release called “chatsite” would set variables that look like settings (CHATSITE_WEB_PORT).
enableServiceLinks: false
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
volumes:
  - name: secrets
    secret: {secretName: {{ .root.Values.existingSecret }}}
  - name: data
    emptyDir: {}
  - name: tmp
    emptyDir: {sizeLimit: 1Gi}
  {{- if and .files .root.Values.files.enabled }}
  - name: files
    persistentVolumeClaim: {claimName: {{ .root.Values.files.existingClaim | default (printf "%s-files" .root.Release.Name) }}}
  {{- end }}
  {{- if and .files .root.Values.erased.existingClaim }}
  - name: erased
    persistentVolumeClaim: {claimName: {{ .root.Values.erased.existingClaim }}}
  {{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
