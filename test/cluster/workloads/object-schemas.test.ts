/** Checks rendered objects against the API of present Kubernetes, as its official client describes it: an unknown or mistyped field would be rejected or dropped. */
import { describe, expect, test } from '@jest/globals';
import * as client from '@kubernetes/client-node';
import fc from 'fast-check';
import { kubeObjects, type KubeObjects } from '../../../src/cluster/workloads/decide/render-deployment.ts';
import type { ClusterWorkload } from '../../../src/reconciler/ports.ts';
import { PodOverlay } from '../../../src/schema/pod/pod-overlay.ts';
import { podOverlays } from '../../schema/pod-arbitrary.ts';
import { RICH_OVERLAY } from '../../schema/rich-overlay.ts';
import { context, kubeWorkload, manifestsOf } from './workload-fixtures.ts';

interface Attribute {
  readonly baseName: string;
  readonly type: string;
}

const MODELS = new Map<string, unknown>(Object.entries(client));

function attributesOf(type: string): readonly Attribute[] | undefined {
  const model = MODELS.get(type);
  if (typeof model !== 'function' || !('getAttributeTypeMap' in model) || typeof model.getAttributeTypeMap !== 'function') return undefined;
  return model.getAttributeTypeMap();
}

/** Returns what does not match the type, with its path. */
function misfits(value: unknown, type: string, path: string): string[] {
  const list = /^Array<(.*)>$/.exec(type)?.[1];
  if (list !== undefined) {
    return Array.isArray(value) ? value.flatMap((each, index) => misfits(each, list, `${path}[${index}]`)) : [`${path} is not a list`];
  }
  const values = /^\{ \[key: string\]: (.*); \}$/.exec(type)?.[1];
  if (values !== undefined) return Object.entries(value ?? {}).flatMap(([key, each]) => misfits(each, values, `${path}.${key}`));
  const attributes = attributesOf(type);
  if (attributes !== undefined) {
    return Object.entries(value ?? {}).flatMap(([key, each]) => {
      const attribute = attributes.find(({ baseName }) => baseName === key);
      return attribute === undefined ? [`${path}.${key} is unknown to ${type}`] : misfits(each, attribute.type, `${path}.${key}`);
    });
  }
  if (type === 'IntOrString') return ['number', 'string'].includes(typeof value) ? [] : [`${path} is not an IntOrString`];
  if (!['string', 'number', 'boolean'].includes(type)) return [`${path} has the type ${type}, which this test does not know`];
  return typeof value === type ? [] : [`${path} is not a ${type}`];
}

const CASES: readonly (readonly [string, Partial<ClusterWorkload>, 'device-plugin' | 'dra'])[] = [
  ['a CPU', {}, 'device-plugin'],
  ['a GPU of a device plugin', { backend: 'cuda', gpus: 2 }, 'device-plugin'],
  ['a GPU by DRA', { backend: 'cuda', gpus: 2 }, 'dra'],
  ['AMD by DRA', { backend: 'rocm' }, 'dra'],
  ['device files', { backend: 'rocm', deviceAccess: 'hostDevices' }, 'device-plugin'],
  ['an NPU', { backend: 'npu' }, 'dra'],
  ['a claim of its own', { storage: { size: '50Gi', className: 'fast' } }, 'device-plugin'],
  ['a directory of the node', { storage: { hostPath: '/srv/models' } }, 'device-plugin'],
  [
    'all else',
    {
      replicas: 3,
      nodeSelector: { disk: 'fast' },
      tolerations: [{ key: 'gpu', operator: 'Exists', effect: 'NoSchedule' }],
      serviceAccountName: 'someone',
      storage: { claimName: 'models' },
    },
    'device-plugin',
  ],
];

const MODEL_OF: Readonly<Record<string, string>> = {
  configMap: 'V1ConfigMap',
  service: 'V1Service',
  disruptionBudget: 'V1PodDisruptionBudget',
  claim: 'V1PersistentVolumeClaim',
  claimTemplate: 'V1ResourceClaimTemplate',
  deployment: 'V1Deployment',
} satisfies Record<keyof KubeObjects, string>;

describe('kubeObjects() renders valid objects of Kubernetes 1.36:', () => {
  test.each(CASES)('with %s', (_, cluster, allocation) => {
    const workload = kubeWorkload({ cluster, devices: ['/dev/dri', '/dev/kfd', 'nvidia.com/gpu=all'], memoryLimitBytes: 2 ** 30 });
    const objects = kubeObjects(workload, context({}, allocation));
    expect(manifestsOf(objects).length).toBeGreaterThanOrEqual(3);
    for (const [key, manifest] of Object.entries(objects)) expect(misfits(manifest, MODEL_OF[key] ?? key, key)).toEqual([]);
  });

  test('with any overlay', () => {
    fc.assert(
      fc.property(podOverlays, fc.constantFrom('cpu' as const, 'cuda' as const, 'npu' as const), (pod, backend) => {
        const workload = kubeWorkload({ cluster: { backend, pod: PodOverlay.parse(pod) } });
        const { deployment } = kubeObjects(workload, context({ SVC_IMAGE_PULL_SECRETS: ['registry'], SVC_POD_PROXY_SECRET: 'proxy' }));
        expect(misfits(deployment, 'V1Deployment', 'deployment')).toEqual([]);
      }),
      { numRuns: 200 },
    );
    const { deployment } = kubeObjects(kubeWorkload({ cluster: { pod: PodOverlay.parse(RICH_OVERLAY) } }), context());
    expect(misfits(deployment, 'V1Deployment', 'deployment')).toEqual([]);
  });

  test('and this test detects an unknown field', () => {
    const { deployment } = kubeObjects(kubeWorkload(), context());
    expect(misfits({ ...deployment, spec: { replicas: '1', replica: 1 } }, 'V1Deployment', 'd')).toEqual([
      'd.spec.replicas is not a number',
      'd.spec.replica is unknown to V1DeploymentSpec',
    ]);
  });
});
