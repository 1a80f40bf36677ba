/** Parts of a slot that break exactly one rule each, with the path of the problem. Tests use them for our own validation and that of API servers. */
export const REFUSED_COMBINATIONS: readonly (readonly [part: Readonly<Record<string, unknown>>, path: string])[] = [
  [{ storage: { claimName: 'models', hostPath: '/models' } }, 'storage.claimName'],
  [{ resources: { deviceAccess: 'hostDevices', gpuResource: 'nvidia.com/gpu' } }, 'resources.gpuResource'],
  [{ resources: { devices: ['gpu0'], gpus: 1 } }, 'resources.devices'],
  [{ rollout: { check: 'a.jsonl', cases: [{ request: { messages: [] }, expect: { contains: 'a' } }] } }, 'rollout.cases'],
  [{ rollout: { pass: 0.5 } }, 'rollout'],
  [{ rollout: { check: 'a.jsonl', tolerance: 0.1 } }, 'rollout.tolerance'],
  [{ autoscale: { min: 3, max: 2, target: { inFlight: 1 } } }, 'autoscale.min'],
  [{ fallback: { when: ['stalled'] } }, 'fallback'],
  [{ fallback: { split: { a: 60, b: 41 } } }, 'fallback.split'],
  [{ autoscale: { min: 0, max: 2, target: { inFlight: 1 } } }, 'autoscale'],
  [{ lifecycle: { warm: ['Mon-Fri 08:30-18:00'] } }, 'lifecycle'],
  [{ lifecycle: { prewarm: 'learned' } }, 'lifecycle'],
  [{ provider: 'remote' }, 'remote'],
  [{ provider: 'gguf', remote: { url: 'https://a/v1' } }, 'remote'],
  [{ provider: 'remote', remote: { url: 'http://a/v1', caFile: '/ca' } }, 'remote.url'],
  [{ provider: 'remote', remote: { url: 'https://a/v1', caFile: '/ca', fingerprint: `sha256:${'0a'.repeat(32)}` } }, 'remote.fingerprint'],
  [{ provider: 'remote', remote: { url: 'http://a/v1', credentialFile: '/key' } }, 'remote.credentialFile'],
  [{ storage: { hostPath: '/models', size: '1Gi' } }, 'storage.hostPath'],
  [{ tolerations: [{ key: 'a', operator: 'Exists', value: 'b' }] }, 'tolerations.0.value'],
  [{ tolerations: [{ value: 'b' }] }, 'tolerations.0.operator'],
  [{ tolerations: [{ key: 'a', tolerationSeconds: 3 }] }, 'tolerations.0.tolerationSeconds'],
  [{ storage: { accessModes: ['ReadWriteMany'] } }, 'storage.accessModes'],
  [{ storage: { size: '1Gi', accessModes: ['ReadWriteOncePod', 'ReadOnlyMany'] } }, 'storage.accessModes'],
  [{ pod: { labels: { 'inference.svc.dev/slot': 'other' } } }, 'pod.labels'],
  [{ pod: { labels: { 'app.kubernetes.io/managed-by': 'me' } } }, 'pod.labels'],
  [{ pod: { labels: { 'no spaces': 'x' } } }, 'pod.labels'],
  [{ pod: { annotations: { 'kubectl.kubernetes.io/default-container': 'model' } } }, 'pod.annotations'],
  [{ pod: { annotations: { '/x': 'x' } } }, 'pod.annotations'],
  // More than fits into the annotations of an object, a ConfigMap and an object: 3 bytes for each sign.
  [{ pod: { annotations: Object.fromEntries(numbered(8).map((name) => [name, '€'.repeat(11_000)])) } }, 'pod.annotations'],
  [{ env: Object.fromEntries(numbered(31).map((name) => [`A${name}`, 'x'.repeat(32_768)])) }, 'env'],
  [{ model: { default: 'a.gguf', args: numbered(40).map(() => '€'.repeat(4000)) } }, 'model.args'],
  [{ model: { default: 'a.gguf', draft: { max: 4 } } }, 'model.draft'],
  [{ model: { default: 'a.gguf', draft: { mtp: true, ngram: true } } }, 'model.draft'],
  [{ model: { default: 'a.gguf', draft: { ngram: true, min: 5, max: 4 } } }, 'model.draft.min'],
  [{ model: { default: 'a.gguf', adapters: [{ name: 'a', file: 'a.gguf' }], presets: { a: {} } } }, 'model.adapters'],
  [{ pod: { volumes: [{ name: 'models', emptyDir: {} }] } }, 'pod.volumes.0.name'],
  [{ pod: { volumes: [{ name: 'device-1', emptyDir: {} }] } }, 'pod.volumes.0.name'],
  [{ pod: { volumes: [{ name: 'a' }] } }, 'pod.volumes.0'],
  [{ pod: { volumes: [{ name: 'a', emptyDir: {}, secret: { secretName: 'b' } }] } }, 'pod.volumes.0'],
  [{ pod: { volumes: [{ name: 'a', projected: { sources: [{}] } }] } }, 'pod.volumes.0.projected.sources.0'],
  [{ env: { GREETING: 'a' }, pod: { server: { env: [{ name: 'GREETING', value: 'b' }] } } }, 'env'],
  [{ resources: { memory: '1Gi' }, pod: { server: { resources: { limits: { memory: '2Gi' } } } } }, 'resources'],
  [{ pod: { model: { env: [{ name: 'SVC_MODELS_DIR', value: '/' }] } } }, 'pod.model.env.0.name'],
  ...(['server', 'model'] as const).flatMap((container) => refusedIn(container)),
];

function numbered(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => String(index));
}

function refusedIn(container: 'server' | 'model'): readonly (readonly [part: Readonly<Record<string, unknown>>, path: string])[] {
  const at = `pod.${container}`;
  const volumes = [{ name: 'a', emptyDir: {} }];
  const ref = { secretKeyRef: { name: 'a', key: 'b' } };
  const parts: readonly (readonly [object, string])[] = [
    [{ env: [{ name: 'A', value: 'b', valueFrom: ref }] }, '.env.0.value'],
    [{ env: [{ name: 'A', valueFrom: {} }] }, '.env.0.valueFrom'],
    [{ env: [{ name: 'A', valueFrom: { ...ref, fieldRef: { fieldPath: 'spec.nodeName' } } }] }, '.env.0.valueFrom'],
    [{ envFrom: [{ prefix: 'A_' }] }, '.envFrom.0'],
    ...['/', '/models', '/models/more', '//models/', '/tmp', '/tmp/'].map((mountPath): readonly [object, string] => [
      { volumeMounts: [{ name: 'a', mountPath }] },
      '.volumeMounts.0.mountPath',
    ]),
    [{ volumeMounts: [{ name: 'b', mountPath: '/b' }] }, ''],
    ...(['requests', 'limits'] as const).flatMap((amounts): readonly (readonly [object, string])[] => [
      [{ resources: { [amounts]: { 'nvidia.com/gpu': 1 } } }, `.resources.${amounts}`],
      [{ resources: { [amounts]: { memori: '1Gi' } } }, `.resources.${amounts}`],
    ]),
  ];
  return parts.map(([overlay, path]) => [{ pod: { volumes, [container]: overlay } }, `${at}${path}`]);
}

/** Durations and sizes outside of their limits, with the path of the problem and the limits that the message must name. */
export const OUTSIDE_LIMITS: readonly (readonly [part: Readonly<Record<string, unknown>>, path: string, limits: string])[] = [
  [{ lifecycle: { drainTimeout: '3650d' } }, 'lifecycle.drainTimeout', 'from "0s" to "24h"'],
  [{ lifecycle: { drainTimeout: '86401s' } }, 'lifecycle.drainTimeout', 'from "0s" to "24h"'],
  [{ lifecycle: { startTimeout: '0s' } }, 'lifecycle.startTimeout', 'from "1s" to "24h"'],
  [{ lifecycle: { startTimeout: '1.01d' } }, 'lifecycle.startTimeout', 'from "1s" to "24h"'],
  [{ lifecycle: { idleTimeout: '999ms' } }, 'lifecycle.idleTimeout', 'from "1s" to "365d"'],
  [{ lifecycle: { idleTimeout: '366d' } }, 'lifecycle.idleTimeout', 'from "1s" to "365d"'],
  [{ resources: { memory: '0' } }, 'resources.memory', 'from "1Mi" to "1024Ti"'],
  [{ resources: { memory: '9' } }, 'resources.memory', 'from "1Mi" to "1024Ti"'],
  [{ resources: { memory: '1000000000000000000T' } }, 'resources.memory', 'from "1Mi" to "1024Ti"'],
  [{ storage: { size: '1025Ti' } }, 'storage.size', 'from "1Mi" to "1024Ti"'],
];

/** The smallest and largest that are accepted. */
export const WITHIN_LIMITS: readonly Readonly<Record<string, unknown>>[] = [
  { lifecycle: { drainTimeout: '0s', startTimeout: '1s', idleTimeout: '1s' } },
  { lifecycle: { drainTimeout: '24h', startTimeout: '1d', idleTimeout: '365d' } },
  { lifecycle: { drainTimeout: '86400000ms', startTimeout: '1440m', idleTimeout: 'never' } },
  { resources: { memory: '1Mi' }, storage: { size: '1024Ti' } },
  { resources: { memory: '1024Ki' }, storage: { size: '1.5Gi' } },
  { model: { default: 'a.gguf', args: Array.from({ length: 100 }, () => 'x'.repeat(4096)) }, env: {}, pod: { annotations: { a: '' } } },
];
