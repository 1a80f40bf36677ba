import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { isTable } from '../../../../src/schema/words/key-case.ts';
import { parseSizeBytes } from '../../../../src/schema/words/quantities.ts';
import { kubeObjects, type KubeContext } from '../../../../src/cluster/workloads/decide/render-deployment.ts';
import { ModelId } from '../../../../src/schema/words/names.ts';
import { quantityOfBytes } from '../../../../src/cluster/client/decide/object-fields.ts';
import type { KubeSettings, KubeWorkload } from '../../../../src/cluster/workloads/decide/object-names.ts';
import { context, kubeWorkload, manifestsOf, OWNER } from '../workload-fixtures.ts';

/** Returns the value at a path of keys and indexes. */
function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((inner, key) => {
    if (Array.isArray(inner)) return inner[Number(key)];
    return isTable(inner) ? inner[key] : undefined;
  }, value);
}

const podSpec = (workload: KubeWorkload, of: KubeContext = context()) =>
  at(kubeObjects(workload, of).deployment, 'spec', 'template', 'spec');
const server = (workload: KubeWorkload, of?: KubeContext) => at(podSpec(workload, of), 'containers', 0);

describe('kubeObjects()', () => {
  test('labels every object, sets the slot as its owner, and gives it a valid name', () => {
    const objects = kubeObjects(kubeWorkload({ name: 'svc-slot-primary--0123456789ab' }), context());
    for (const { metadata } of manifestsOf(objects)) {
      expect(metadata).toMatchObject({
        labels: { 'inference.svc.dev/slot': 'primary', 'app.kubernetes.io/managed-by': 'svc' },
        ownerReferences: [OWNER],
      });
      expect(metadata.name).toMatch(/^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/);
    }
    expect(objects.configMap.metadata.name).toBe('svc-slot-primary--0123456789ab-0123456789ab');
    expect(objects.service.metadata.name).toBe('svc-slot-primary');
    expect(objects.deployment.metadata.annotations?.['inference.svc.dev/generation']).toBe('7');
  });

  test('selects the pods of one workload only, also beside another one with the same revision', () => {
    const [one, other] = ['svc-slot-primary', 'svc-slot-primary--0123456789ab'].map(
      (name) => kubeObjects(kubeWorkload({ name }), context()).deployment,
    );
    const labels = at(one, 'spec', 'template', 'metadata', 'labels');
    expect(at(one, 'spec', 'selector', 'matchLabels')).toEqual(labels);
    expect(at(other, 'spec', 'selector', 'matchLabels')).not.toEqual(labels);
  });

  test('passes the whole argument vector, without expanding variables', () => {
    const workload = kubeWorkload({ argv: ['llama-server', '--chat-template', '$(GREETING) $$ $', ''] });
    expect(server(workload)).toMatchObject({ command: ['llama-server'], args: ['--chat-template', '$$(GREETING) $$$$ $$', ''] });
    expect(server(kubeWorkload({ argv: ['only'] }))).toMatchObject({ command: ['only'], args: [] });
  });

  test('is as strict as the backend allows', () => {
    expect(podSpec(kubeWorkload())).toMatchObject({
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: { runAsNonRoot: true, runAsUser: 65_532, seccompProfile: { type: 'RuntimeDefault' } },
    });
    const confined = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] }, readOnlyRootFilesystem: true };
    const securityOf = (cluster: Partial<KubeWorkload['cluster']>, devices: readonly string[] = []) =>
      at(server(kubeWorkload({ cluster, devices })), 'securityContext');
    expect(securityOf({})).toEqual(confined);
    expect(securityOf({ backend: 'cuda' })).toEqual(confined);
    expect(securityOf({ backend: 'rocm' })).toEqual({ ...confined, runAsNonRoot: false, runAsUser: 0, runAsGroup: 0 });
    expect(securityOf({ backend: 'npu' }, ['/dev/accel'])).toMatchObject({ privileged: true, readOnlyRootFilesystem: true });
  });

  test('requests the memory that admission counts, but never more than the limit', () => {
    expect(at(server(kubeWorkload()), 'resources')).toEqual({ requests: { memory: '9Gi' } });
    expect(at(server(kubeWorkload({ memoryLimitBytes: 12 * 2 ** 30 })), 'resources')).toEqual({
      requests: { memory: '9Gi' },
      limits: { memory: '12Gi' },
    });
    expect(at(server(kubeWorkload({ memoryLimitBytes: 4e9 })), 'resources')).toEqual({
      requests: { memory: '3906250Ki' },
      limits: { memory: '3906250Ki' },
    });
  });

  test('requests no memory if the size of the model is not known', () => {
    const resourcesOf = (memoryLimitBytes?: number) =>
      at(server(kubeWorkload({ cluster: { memoryBytes: memoryLimitBytes }, memoryLimitBytes })), 'resources');
    expect(resourcesOf()).toEqual({});
    expect(resourcesOf(2 ** 30)).toEqual({ requests: { memory: '1Gi' }, limits: { memory: '1Gi' } });
  });

  test('requests only the configured node memory if a GPU holds the model', () => {
    const resourcesOf = (more: Parameters<typeof kubeWorkload>[0]) =>
      at(server(kubeWorkload({ cluster: { backend: 'cuda' }, ...more })), 'resources');
    expect(resourcesOf({})).toEqual({ limits: { 'nvidia.com/gpu': '1' } });
    expect(resourcesOf({ memoryLimitBytes: 2 ** 30 })).toEqual({
      requests: { memory: '1Gi' },
      limits: { memory: '1Gi', 'nvidia.com/gpu': '1' },
    });
  });

  test('allows time for requests in flight, and for a start', () => {
    const workload = kubeWorkload({ cluster: { drainTimeoutMs: 600_000, startTimeoutMs: 1_200_000 }, port: { host: 443, container: 443 } });
    expect(at(podSpec(workload), 'terminationGracePeriodSeconds')).toBeGreaterThan(600);
    expect(
      Number(at(server(workload), 'startupProbe', 'failureThreshold')) * Number(at(server(workload), 'startupProbe', 'periodSeconds')),
    ).toBeGreaterThan(1200);
    expect(String(at(server(workload), 'lifecycle', 'preStop', 'exec', 'command', 2))).toContain(':01BB 01');
  });
});

describe('the models of a workload', () => {
  const volume = (workload: KubeWorkload, settings: Parameters<typeof context>[0] = {}) => {
    const volumes = at(podSpec(workload, context(settings)), 'volumes');
    return Array.isArray(volumes) ? volumes.find(({ name }) => name === 'models') : undefined;
  };
  const stored = (storage: KubeWorkload['cluster']['storage']) => kubeWorkload({ cluster: { storage } });

  test('are stored where the slot configures, otherwise where the service does, otherwise in the pod', () => {
    const both = { SVC_MODELS_CLAIM: 'shared', SVC_MODELS_HOST_PATH: '/srv/models' };
    expect(volume(stored({ claimName: 'own' }), both)).toMatchObject({ persistentVolumeClaim: { claimName: 'own' } });
    expect(volume(stored({ hostPath: '/data' }), both)).toMatchObject({ hostPath: { path: '/data' } });
    expect(volume(stored({ size: '10Gi' }), both)).toMatchObject({ persistentVolumeClaim: { claimName: 'svc-slot-primary' } });
    expect(volume(stored({}), both)).toMatchObject({ persistentVolumeClaim: { claimName: 'shared' } });
    expect(volume(kubeWorkload(), { SVC_MODELS_HOST_PATH: '/srv/models' })).toMatchObject({ hostPath: { path: '/srv/models' } });
    expect(volume(kubeWorkload())).toEqual({ name: 'models', emptyDir: {} });
    expect(volume(kubeWorkload({ mounts: [] }))).toBeUndefined();
  });

  test('that are workflows of the ConfigMap are checked where the gateway reads them, in no other pod', () => {
    const settings = { SVC_WORKFLOWS_CONFIG_MAP: 'workflows', SVC_IMAGE: 'registry.example/svc:1' };
    const podWith = (model: string, given: Parameters<typeof context>[0] = settings) =>
      podSpec(kubeWorkload({ cluster: { model: ModelId.parse(model) } }), context(given));
    const own = podWith('image/models/checkpoints/workflows/portrait.workflow.json');
    const volume = { name: 'mount-1', configMap: { name: 'workflows', optional: true } };
    expect(at(own, 'volumes')).toContainEqual(volume);
    expect(at(own, 'initContainers', 0, 'volumeMounts')).toContainEqual({ name: 'mount-1', mountPath: '/workflows', readOnly: true });
    expect(at(own, 'initContainers', 0, 'env')).toContainEqual({ name: 'SVC_WORKFLOWS_CONFIG_MAP', value: 'workflows' });
    expect(JSON.stringify(at(own, 'containers'))).not.toContain('/workflows"');
    for (const other of [
      podWith('image/models/checkpoints/portrait/portrait.workflow.json'),
      podWith('image/models/checkpoints/workflows/a.workflow.json', { SVC_IMAGE: 'registry.example/svc:1' }),
    ])
      expect(JSON.stringify(other)).not.toContain('configMap":{"name":"workflows"');
  });

  test('have a claim of their own only if the slot configures one', () => {
    const claim = kubeObjects(stored({ size: '1536Mi', className: 'fast' }), context()).claim;
    expect(claim?.['spec']).toEqual({
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1536Mi' } },
      storageClassName: 'fast',
    });
    for (const storage of [undefined, {}, { claimName: 'own' }, { hostPath: '/data' }])
      expect(kubeObjects(stored(storage), context()).claim).toBeUndefined();
  });

  test('are fetched before the server starts, which cannot write them', () => {
    const fetcher = at(podSpec(kubeWorkload()), 'initContainers', 0);
    expect(fetcher).toMatchObject({
      image: 'registry.example/svc:1',
      command: ['svcctl', 'model', 'fetch', 'qwen3-8b'],
      env: [{ name: 'SVC_MODELS_DIR', value: '/models' }],
      terminationMessagePolicy: 'FallbackToLogsOnError',
      securityContext: { capabilities: { drop: ['ALL'] } },
    });
    expect(at(fetcher, 'volumeMounts')).toContainEqual({ name: 'models', mountPath: '/models' });
    expect(at(server(kubeWorkload()), 'volumeMounts')).toContainEqual({ name: 'models', mountPath: '/models', readOnly: true });
    expect(at(podSpec(kubeWorkload(), context({ SVC_IMAGE: undefined })), 'initContainers')).toBeUndefined();
    expect(at(podSpec(kubeWorkload({ mounts: [] })), 'initContainers')).toBeUndefined();
    // A directory of the node belongs to root.
    expect(at(podSpec(stored({ hostPath: '/data' })), 'initContainers', 0, 'securityContext')).toMatchObject({
      runAsUser: 0,
      capabilities: { add: ['DAC_OVERRIDE'], drop: ['ALL'] },
    });
  });
});

describe('a model that the pods fetch', () => {
  const pinnedBy = { object: 'svc-model-0123', digest: 'abc' };
  const envOf = (settings: Partial<KubeSettings> = {}, pod?: KubeWorkload['cluster']['pod']) =>
    at(podSpec(kubeWorkload({ cluster: { pinnedBy, pod } }), context(settings)), 'initContainers', 0, 'env');
  const PIN = { name: 'SVC_MODEL_PIN', valueFrom: { configMapKeyRef: { name: 'svc-model-0123', key: 'pin' } } };
  const MODELS = { name: 'SVC_MODELS_DIR', value: '/models' };

  test('is named by the record of the cluster, and the token comes from a Secret', () => {
    expect(envOf()).toEqual([MODELS, PIN]);
    expect(envOf({ hubEndpoint: 'https://mirror.example/$x', SVC_HF_TOKEN_SECRET: 'hugging-face' })).toEqual([
      MODELS,
      PIN,
      { name: 'HF_ENDPOINT', value: 'https://mirror.example/$$x' },
      { name: 'HF_TOKEN', valueFrom: { secretKeyRef: { name: 'hugging-face', key: 'HF_TOKEN', optional: true } } },
    ]);
  });

  test('is fetched with the variables of the slot where it has its own', () => {
    const own = { name: 'HF_TOKEN', valueFrom: { secretKeyRef: { name: 'mine', key: 'token' } } };
    expect(envOf({ SVC_HF_TOKEN_SECRET: 'hugging-face' }, { model: { env: [own] } })).toEqual([MODELS, PIN, own]);
  });

  test('leaves the server alone, and models that are not fetched from the Hub as they were', () => {
    const workload = kubeWorkload({ cluster: { pinnedBy } });
    const given = context({ SVC_HF_TOKEN_SECRET: 'hugging-face', hubEndpoint: 'https://mirror.example' });
    expect(JSON.stringify(server(workload, given))).not.toMatch(/HF_|PIN/);
    expect(at(podSpec(kubeWorkload(), given), 'initContainers', 0, 'env')).toEqual([MODELS]);
  });
});

describe('quantityOfBytes()', () => {
  test.each([
    [0, '0'],
    [1, '1'],
    [999, '999'],
    [1000, '1k'],
    [1024, '1Ki'],
    [9 * 2 ** 30, '9Gi'],
    [2 ** 50, '1Pi'],
    [1_500_000_000, '1500M'],
    [1.5, '2'],
  ])('writes %d bytes as "%s"', (bytes, text) => expect(quantityOfBytes(bytes)).toBe(text));

  test('is exact, and uses the largest possible unit', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 49 }), (bytes) => {
        const text = quantityOfBytes(bytes);
        expect(parseSizeBytes(text)).toBe(bytes);
        const [, digits = '', unit = ''] = /^(\d+)(.*)$/.exec(text) ?? [];
        if (unit !== 'T' && unit !== 'Ti') expect(Number(digits) % (unit.endsWith('i') ? 1024 : 1000)).not.toBe(0);
      }),
    );
  });
});
