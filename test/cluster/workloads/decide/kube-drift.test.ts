import { describe, expect, test } from '@jest/globals';
import type { KubeObject } from '../../../../src/cluster/client/ports.ts';
import { isTable } from '../../../../src/schema/key-case.ts';
import { findDifferences } from '../../../../src/cluster/workloads/decide/kube-difference.ts';
import { appliedSpec, findAlteredObjects, overriddenEnv, withEnv } from '../../../../src/cluster/workloads/decide/kube-drift.ts';
import { createKubeObserver } from '../../../../src/cluster/workloads/decide/kube-observe.ts';
import type { KubeSight } from '../../../../src/cluster/workloads/decide/kube-observe.ts';
import { deploymentSpec } from '../../../../src/cluster/workloads/decide/kube-objects.ts';
import { context, kubeWorkload, OWNER, sightOf } from '../kube-fixtures.ts';

const WORKLOAD = kubeWorkload({ memoryLimitBytes: 12 * 2 ** 30, cluster: { replicas: 2 } });

function altered(sight: KubeSight, wanted = WORKLOAD): readonly string[] {
  const observer = createKubeObserver();
  const [found] = observer.observe(sight);
  const record = found === undefined ? undefined : observer.recordOf(found);
  if (record === undefined) throw new Error('There is no Deployment');
  return findAlteredObjects(wanted, record, appliedSpec(record.deployment), OWNER);
}

/** A copy with another value at a path; undefined takes it away. */
function set(value: unknown, [key, ...rest]: readonly (string | number)[], to: unknown): unknown {
  if (key === undefined) return to;
  if (Array.isArray(value))
    return value.map((each, index) => (index === key ? set(each, rest, to) : each)).concat(key === value.length ? [to] : []);
  const table = isTable(value) ? value : {};
  return { ...table, [key]: set(table[key], rest, to) };
}

function edited(kind: Exclude<keyof KubeSight, 'warnings'>, path: readonly (string | number)[], to: unknown): KubeSight {
  const sight = sightOf([WORKLOAD]);
  const objects = new Map([...sight[kind]].map(([name, object]) => [name, edit(object, path, to)]));
  return { ...sight, [kind]: objects };
}

function edit(object: KubeObject, path: readonly (string | number)[], to: unknown): KubeObject {
  const changed = set(object, path, to);
  return isTable(changed) ? { ...object, ...changed } : object;
}

const POD = ['spec', 'template', 'spec'] as const;
const SERVER = [...POD, 'containers', 0] as const;

describe('findAlteredObjects()', () => {
  test('finds nothing in what was just applied', () => expect(altered(sightOf([WORKLOAD]))).toEqual([]));

  test.each([
    ['replicas', ['spec', 'replicas'], 0, 'replicas 0 instead of 2'],
    ['the image', [...SERVER, 'image'], 'evil', 'image "evil" instead of "registry.example/gguf@sha256:00"'],
    ['arguments', [...SERVER, 'args'], ['--model'], expect.stringMatching(/^args \["--model"\] instead of \["--model","\/models/)],
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
    ['its owner', ['metadata', 'ownerReferences'], [], 'owner missing'],
    [
      'what was applied',
      ['metadata', 'annotations', 'inference.svc.dev/applied'],
      'no JSON',
      'annotation "inference.svc.dev/applied" missing',
    ],
    ['the way of roll-outs', ['spec', 'strategy', 'type'], 'Recreate', 'strategy.type "Recreate" instead of "RollingUpdate"'],
    ['the hook', [...SERVER, 'lifecycle'], {}, expect.stringContaining('lifecycle.preStop')],
  ])('says that somebody altered %s', (_, path, to, phrase) => {
    expect(altered(edited('deployments', path, to))).toContainEqual(phrase);
  });

  test('a value of the environment that is set over ours is found, and not repeated', () => {
    const found = altered(edited('deployments', [...SERVER, 'env'], [{ name: 'GREETING', value: 'secret' }]));
    expect(found).toEqual(['env "GREETING" with another value']);
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
  ])('is not concerned with %s that somebody added', (_, path, to) => {
    expect(altered(edited('deployments', path, to))).toEqual([]);
  });

  test('sees what happened to the Service and the ConfigMap', () => {
    const sight = sightOf([WORKLOAD]);
    expect(altered({ ...sight, services: new Map() })).toEqual(['Service "svc-slot-primary" deleted']);
    expect(altered({ ...sight, configMaps: new Map() })).toEqual(['ConfigMap "svc-slot-primary-0123456789ab" deleted']);
    expect(altered(edited('services', ['spec', 'selector', 'more'], 'x'))).toEqual(['Service "svc-slot-primary": another selector']);
    expect(altered(edited('services', ['spec', 'ports', 0, 'targetPort'], 1))).toEqual([
      'Service "svc-slot-primary": ports[8080].targetPort 1 instead of "http"',
    ]);
    expect(altered(edited('configMaps', ['data', 'GREETING'], 'secret'))).toEqual([
      'ConfigMap "svc-slot-primary-0123456789ab" with other values',
    ]);
  });

  test('a newer program, other settings and edited times are no alteration: what runs is not restarted for them', () => {
    const sight = sightOf([WORKLOAD], [], context({ SVC_IMAGE: 'registry.example/svc:0', SVC_MODELS_CLAIM: 'old' }));
    expect(altered(sight, { ...WORKLOAD, cluster: { ...WORKLOAD.cluster, drainTimeoutMs: 1, startTimeoutMs: 1, replicas: 5 } })).toEqual(
      [],
    );
  });
});

describe('withEnv()', () => {
  test('sets our variables over those of others, and only them', () => {
    const observer = createKubeObserver();
    const entries = [
      { name: 'OTHER', value: '1' },
      { name: 'GREETING', value: 'x' },
    ];
    const sight = edited('deployments', [...SERVER, 'env'], entries);
    const [found] = observer.observe(sight);
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
