import type { PodOverlay } from '../../src/schema/pod/pod-overlay.ts';

/** An overlay with every key that a pod of any Kubernetes since 1.20 can have, and without effects that the node of a test cannot provide. */
export const RICH_OVERLAY = {
  labels: { team: 'search', 'example.com/cost-centre': '42' },
  annotations: { 'example.com/note': 'owned by the search team, see the wiki' },
  imagePullSecrets: [{ name: 'registry' }],
  priorityClassName: 'inference',
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/os', operator: 'In', values: ['linux'] }] }],
      },
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 10, preference: { matchExpressions: [{ key: 'disk', operator: 'Exists' }] } },
      ],
    },
    podAntiAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 50, podAffinityTerm: { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { team: 'batch' } } } },
      ],
    },
  },
  topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'ScheduleAnyway' }],
  securityContext: { runAsUser: 1_000_680_000, runAsGroup: 0, fsGroup: 1_000_680_000, supplementalGroups: [44] },
  volumes: [
    {
      name: 'credentials',
      secret: { secretName: 'credentials', items: [{ key: 'token', path: 'api/token', mode: 0o440 }], defaultMode: 0o440 },
    },
    { name: 'settings', configMap: { name: 'settings', optional: true } },
    { name: 'cache', emptyDir: { sizeLimit: '1024Mi' } },
    {
      name: 'identity',
      projected: {
        sources: [
          { serviceAccountToken: { path: 'token', audience: 'vault', expirationSeconds: 3600 } },
          { configMap: { name: 'settings', optional: true } },
        ],
      },
    },
  ],
  server: {
    resources: {
      requests: { cpu: '100m', memory: '0.03125Gi', 'ephemeral-storage': '64Mi' },
      limits: { cpu: '2000m', memory: '262144Ki', 'ephemeral-storage': '1Gi' },
    },
    env: [
      { name: 'API_TOKEN', valueFrom: { secretKeyRef: { name: 'credentials', key: 'token' } } },
      { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
      { name: 'CPUS', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1000m' } } },
      { name: 'MODE', value: 'quiet' },
      { name: 'BLANK', value: '' },
    ],
    envFrom: [{ prefix: 'FROM_', configMapRef: { name: 'settings', optional: true } }, { secretRef: { name: 'credentials' } }],
    volumeMounts: [
      { name: 'credentials', mountPath: '/etc/credentials', readOnly: true },
      { name: 'settings', mountPath: '/etc/settings', readOnly: false },
      { name: 'cache', mountPath: '/tmp/cache' },
      { name: 'identity', mountPath: '/var/run/identity', readOnly: true },
    ],
    securityContext: { capabilities: { drop: ['ALL'] }, readOnlyRootFilesystem: true },
  },
  model: { resources: { limits: { memory: '512Mi' } }, env: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/etc/settings/ca.pem' }] },
} satisfies PodOverlay;
