import { describe, expect, test } from '@jest/globals';
import type { KubeObject } from '../../../../src/cluster/client/ports.ts';
import { isTable } from '../../../../src/schema/words/key-case.ts';
import { pruneDeployment } from '../../../../src/cluster/workloads/decide/pod-facts.ts';
import { findDifferences, findAlteredObjects, overriddenEnv, withEnv } from '../../../../src/cluster/workloads/decide/template-drift.ts';
import { createKubeObserver, type KubeSnapshot } from '../../../../src/cluster/workloads/observe-workloads.ts';
import { deploymentSpec } from '../../../../src/cluster/workloads/decide/render-deployment.ts';
import { context, kubeWorkload, OWNER, snapshotOf } from '../workload-fixtures.ts';

const WORKLOAD = kubeWorkload({ memoryLimitBytes: 12 * 2 ** 30, cluster: { replicas: 2 } });

function altered(snapshot: KubeSnapshot, wanted = WORKLOAD): readonly string[] {
  const observer = createKubeObserver();
  const [found] = observer.observe(snapshot);
  const record = found === undefined ? undefined : observer.recordOf(found);
  if (record === undefined) throw new Error('There is no Deployment');
  return findAlteredObjects(wanted, record, OWNER);
}

/** Returns a copy with another value at a path; undefined removes it. */
function set(value: unknown, [key, ...rest]: readonly (string | number)[], to: unknown): unknown {
  if (key === undefined) return to;
  if (Array.isArray(value))
    return value.map((each, index) => (index === key ? set(each, rest, to) : each)).concat(key === value.length ? [to] : []);
  const table = isTable(value) ? value : {};
  return { ...table, [key]: set(table[key], rest, to) };
}

function edited(
  kind: Exclude<keyof KubeSnapshot, 'warnings' | 'fetched' | 'isPartial'>,
  path: readonly (string | number)[],
  to: unknown,
): KubeSnapshot {
  const snapshot = snapshotOf([WORKLOAD]);
  const objects = new Map([...snapshot[kind]].map(([name, object]) => [name, edit(object, path, to)]));
  return { ...snapshot, [kind]: objects };
}

function edit(object: KubeObject, path: readonly (string | number)[], to: unknown): KubeObject {
  const changed = set(object, path, to);
  return isTable(changed) ? { ...object, ...changed } : object;
}

const POD = ['spec', 'template', 'spec'] as const;
const SERVER = [...POD, 'containers', 0] as const;

describe('findAlteredObjects()', () => {
  test('finds nothing in what was just applied', () => expect(altered(snapshotOf([WORKLOAD]))).toEqual([]));

  test('does not miss what a replica that does not lead has no copies of', () => {
    const snapshot = { ...snapshotOf([WORKLOAD]), services: new Map(), configMaps: new Map() };
    expect(altered(snapshot)).toHaveLength(2);
    expect(altered({ ...snapshot, isPartial: true })).toEqual([]);
  });

  test('names the program that wrote the changed field last', () => {
    const written = (manager: string, time: string | undefined, fieldsV1: unknown) => ({ manager, operation: 'Update', time, fieldsV1 });
    const managed = [
      written('svc-controller', '2026-01-03T00:00:00Z', { 'f:spec': { 'f:replicas': {} } }),
      written('kubectl', '2026-01-01T00:00:00Z', { 'f:spec': { 'f:replicas': {}, 'f:template': {} } }),
      written('kube-downscaler', '2026-01-02T00:00:00Z', { 'f:metadata': { 'f:annotations': {} }, 'f:spec': { 'f:replicas': {} } }),
      written('kube-controller-manager', '2026-01-04T00:00:00Z', { 'f:status': { 'f:replicas': {} } }),
    ];
    const scaled = edited('deployments', ['spec', 'replicas'], 0);
    const deployments = new Map(
      [...scaled.deployments].map(([name, object]) => [name, pruneDeployment(edit(object, ['metadata', 'managedFields'], managed))]),
    );
    expect(altered({ ...scaled, deployments })).toEqual(['replicas 0 instead of 2 (by "kube-downscaler")']);
  });

  test('names no program where the object names none, or says it in a form that is not known', () => {
    const scaled = edited('deployments', ['spec', 'replicas'], 0);
    for (const managed of [[], [{ manager: 5 }], 'nobody', undefined]) {
      const deployments = new Map(
        [...scaled.deployments].map(([name, object]) => [name, pruneDeployment(edit(object, ['metadata', 'managedFields'], managed))]),
      );
      expect(altered({ ...scaled, deployments })).toEqual(['replicas 0 instead of 2']);
    }
  });

  test.each([
    ['replicas', ['spec', 'replicas'], 0, 'replicas 0 instead of 2'],
    ['the image', [...SERVER, 'image'], 'evil', 'image "evil" instead of "registry.example/gguf@sha256:00"'],
    ['arguments, which may be secrets', [...SERVER, 'args'], ['--api-key', 'secret'], 'args changed'],
    ['memory', [...SERVER, 'resources', 'limits', 'memory'], '1Gi', 'resources.limits.memory "1Gi" instead of "12Gi"'],
    ['a volume', [...POD, 'volumes'], [], expect.stringContaining('volumes[tmp]')],
    ['a mount', [...SERVER, 'volumeMounts', 1, 'readOnly'], undefined, 'volumeMounts[/models].readOnly missing'],
    ['a probe', [...SERVER, 'livenessProbe'], undefined, 'livenessProbe missing'],
    [
      'the security context',
      [...SERVER, 'securityContext', 'capabilities', 'drop'],
      ['NET_RAW'],
      expect.stringContaining('capabilities.drop'),
    ],
    [
      'a label',
      ['metadata', 'labels', 'app.kubernetes.io/instance'],
      'x',
      'labels.app.kubernetes.io/instance "x" instead of "svc-slot-primary"',
    ],
    ['its owner', ['metadata', 'ownerReferences'], [], 'owner reference missing'],
    [
      'what was applied',
      ['metadata', 'annotations', 'inference.svc.dev/applied'],
      'no JSON',
      'annotation "inference.svc.dev/applied" missing',
    ],
    ['the strategy', ['spec', 'strategy', 'type'], 'Recreate', 'strategy.type "Recreate" instead of "RollingUpdate"'],
    ['the hook', [...SERVER, 'lifecycle'], {}, expect.stringContaining('lifecycle.preStop')],
  ])('reports a change of %s', (_, path, to, phrase) => {
    expect(altered(edited('deployments', path, to))).toContainEqual(phrase);
  });

  test('reports an overridden variable without its value', () => {
    const found = altered(edited('deployments', [...SERVER, 'env'], [{ name: 'GREETING', value: 'secret' }]));
    expect(found).toEqual(['env "GREETING" changed']);
    const fromSecret = [{ name: 'GREETING', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }];
    expect(altered(edited('deployments', [...SERVER, 'env'], fromSecret))).toHaveLength(1);
  });

  test.each([
    ['a label', ['metadata', 'labels', 'team'], 'red'],
    ['an annotation', ['metadata', 'annotations', 'note'], 'x'],
    ['a label of pods', ['spec', 'template', 'metadata', 'labels', 'team'], 'red'],
    ['a variable', [...SERVER, 'env'], [{ name: 'OTHER', value: '1' }]],
    ['the same value again', [...SERVER, 'env'], [{ name: 'GREETING', value: 'hello' }]],
    ['a sidecar', [...POD, 'containers', 1], { name: 'sidecar', image: 'x' }],
    ['a volume', [...POD, 'volumes', 2], { name: 'more', emptyDir: {} }],
    ['a field', [...POD, 'priorityClassName'], 'high'],
    ['a default', [...SERVER, 'terminationMessagePath'], '/dev/termination-log'],
  ])('ignores %s that another client added', (_, path, to) => {
    expect(altered(edited('deployments', path, to))).toEqual([]);
  });

  test('reports changes of the Service and the ConfigMap', () => {
    const snapshot = snapshotOf([WORKLOAD]);
    expect(altered({ ...snapshot, services: new Map() })).toEqual(['Service "svc-slot-primary" deleted']);
    expect(altered({ ...snapshot, configMaps: new Map() })).toEqual(['ConfigMap "svc-slot-primary-0123456789ab" deleted']);
    expect(altered(edited('services', ['spec', 'selector', 'more'], 'x'))).toEqual(['Service "svc-slot-primary": selector changed']);
    expect(altered(edited('services', ['spec', 'ports', 0, 'targetPort'], 1))).toEqual([
      'Service "svc-slot-primary": ports[8080].targetPort 1 instead of "http"',
    ]);
    expect(altered(edited('configMaps', ['data', 'GREETING'], 'secret'))).toEqual([
      'ConfigMap "svc-slot-primary-0123456789ab": data changed',
    ]);
  });

  test('a newer program, other settings and another number of replicas are no changes: running pods are not restarted for them', () => {
    const snapshot = snapshotOf([WORKLOAD], [], context({ SVC_IMAGE: 'registry.example/svc:0', SVC_MODELS_CLAIM: 'old' }));
    expect(altered(snapshot, { ...WORKLOAD, cluster: { ...WORKLOAD.cluster, readyPath: '/ready', replicas: 5 } })).toEqual([]);
  });
});

describe('withEnv()', () => {
  test('overrides the variables of other clients with ours, and only those', () => {
    const observer = createKubeObserver();
    const entries = [
      { name: 'OTHER', value: '1' },
      { name: 'GREETING', value: 'x' },
    ];
    const snapshot = edited('deployments', [...SERVER, 'env'], entries);
    const [found] = observer.observe(snapshot);
    const record = found === undefined ? undefined : observer.recordOf(found);
    const over = record === undefined ? {} : overriddenEnv(WORKLOAD, record.deployment);
    expect(over).toEqual({ GREETING: 'hello' });
    const spec = withEnv(deploymentSpec(WORKLOAD, context()), over);
    expect(findDifferences(spec, deploymentSpec(WORKLOAD, context())).map(({ path }) => path.join('.'))).toEqual([
      'template.spec.containers.[server].env.[GREETING]',
    ]);
    expect(withEnv(deploymentSpec(WORKLOAD, context()), {})).toEqual(deploymentSpec(WORKLOAD, context()));
  });
});
