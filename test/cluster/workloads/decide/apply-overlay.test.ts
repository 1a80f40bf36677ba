import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { KubeObject } from '../../../../src/cluster/client/ports.ts';
import { findAlteredObjects } from '../../../../src/cluster/workloads/decide/template-drift.ts';
import { kubeObjects } from '../../../../src/cluster/workloads/decide/render-deployment.ts';
import { createKubeObserver } from '../../../../src/cluster/workloads/observe-workloads.ts';
import type { KubeSettings } from '../../../../src/cluster/workloads/decide/object-names.ts';
import type { ClusterWorkload } from '../../../../src/reconciler/ports.ts';
import { isTable } from '../../../../src/schema/words/key-case.ts';
import { PodOverlay } from '../../../../src/schema/pod/pod-overlay.ts';
import { podOverlays } from '../../../schema/pod-arbitrary.ts';
import { RICH_OVERLAY } from '../../../schema/rich-overlay.ts';
import { context, kubeWorkload, OWNER, snapshotOf } from '../workload-fixtures.ts';
import { asServerStores } from '../server-form.ts';

type Json = Readonly<Record<string, unknown>>;
const at = (value: unknown, ...path: readonly (string | number)[]): unknown =>
  path.reduce<unknown>((inner, part) => (Array.isArray(inner) ? inner[Number(part)] : isTable(inner) ? inner[part] : undefined), value);

function template(pod: object, cluster: Partial<ClusterWorkload> = {}, settings: Partial<KubeSettings> = {}): unknown {
  const workload = kubeWorkload({ cluster: { ...cluster, pod: PodOverlay.parse(pod) } });
  return at(kubeObjects(workload, context(settings)).deployment, 'spec', 'template');
}
const spec = (...given: Parameters<typeof template>): unknown => at(template(...given), 'spec');
const server = (...given: Parameters<typeof template>): unknown => at(spec(...given), 'containers', 0);
const model = (...given: Parameters<typeof template>): unknown => at(spec(...given), 'initContainers', 0);

describe('the overlay in the pod template', () => {
  test('leaves the template of a slot without one as it is', () => {
    expect(template({})).toEqual(at(kubeObjects(kubeWorkload(), context()).deployment, 'spec', 'template'));
  });

  test('adds labels and annotations below those of the controller', () => {
    const { metadata } = Object(template(RICH_OVERLAY));
    expect(metadata.labels).toEqual({
      team: 'search',
      'example.com/cost-centre': '42',
      'inference.svc.dev/slot': 'primary',
      'inference.svc.dev/revision': '0123456789ab',
      'app.kubernetes.io/managed-by': 'svc',
      'app.kubernetes.io/instance': 'svc-slot-primary',
    });
    expect(metadata.annotations).toEqual({ ...RICH_OVERLAY.annotations, 'kubectl.kubernetes.io/default-container': 'server' });
  });

  test('lists the pull secrets of the installation first, each once', () => {
    const settings = { SVC_IMAGE_PULL_SECRETS: ['installation', 'both'] };
    const pod = { imagePullSecrets: [{ name: 'both' }, { name: 'slot' }] };
    expect(at(spec(pod, {}, settings), 'imagePullSecrets')).toEqual([{ name: 'installation' }, { name: 'both' }, { name: 'slot' }]);
    expect(spec({})).not.toHaveProperty('imagePullSecrets');
  });

  test('sets what the controller leaves open', () => {
    const pod = { priorityClassName: 'a', runtimeClassName: 'b', schedulerName: 'c' };
    expect(spec(pod)).toMatchObject(pod);
  });

  test('spreads the pods of the revision if a constraint selects none', () => {
    const mine = { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' };
    const all = { ...mine, topologyKey: 'rack', labelSelector: { matchLabels: { team: 'search' } } };
    expect(at(spec({ topologySpreadConstraints: [mine, all] }), 'topologySpreadConstraints')).toEqual([
      { ...mine, labelSelector: { matchLabels: expect.objectContaining({ 'inference.svc.dev/revision': '0123456789ab' }) } },
      all,
    ]);
  });

  test('requires what the controller requires in each alternative of a node affinity', () => {
    const [a, b] = ['a', 'b'].map((key) => ({ matchExpressions: [{ key, operator: 'Exists' }] }));
    const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [a, b] } };
    const own = { key: 'inference.svc.dev/backend-npu', operator: 'In', values: ['true'] };
    const terms = (pod: object) =>
      at(spec(pod, { backend: 'npu' }), 'affinity', 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution', 'nodeSelectorTerms');
    expect(terms({ affinity: { nodeAffinity: required } })).toEqual([
      { matchExpressions: [{ key: 'a', operator: 'Exists' }, own] },
      { matchExpressions: [{ key: 'b', operator: 'Exists' }, own] },
    ]);
    expect(terms({ affinity: { podAffinity: {} } })).toEqual([{ matchExpressions: [own] }]);
    const preferred = at(
      spec({ affinity: { nodeAffinity: required } }, { backend: 'cuda' }),
      'affinity',
      'nodeAffinity',
      'preferredDuringSchedulingIgnoredDuringExecution',
    );
    expect(preferred).toHaveLength(1);
  });
});

describe('security contexts', () => {
  const ids = { runAsUser: 65_532, runAsGroup: 65_532, fsGroup: 65_532 };
  const rest = { runAsNonRoot: true, fsGroupChangePolicy: 'OnRootMismatch', seccompProfile: { type: 'RuntimeDefault' } };

  test.each<readonly [string, object, Partial<KubeSettings>, object]>([
    ['by default', {}, {}, { ...rest, ...ids }],
    ['with another user for all slots', {}, { SVC_POD_USER: 1000 }, { ...rest, runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000 }],
    ['where the cluster assigns the user', {}, { SVC_POD_USER: 'any' }, rest],
    ['with a user of the slot', { runAsUser: 7 }, {}, { ...rest, runAsUser: 7 }],
    ['with further groups', { supplementalGroups: [44] }, {}, { ...rest, ...ids, supplementalGroups: [44] }],
    ['with another profile', { seccompProfile: { type: 'Unconfined' } }, {}, { ...rest, ...ids, seccompProfile: { type: 'Unconfined' } }],
  ])('of a pod %s', (_, securityContext, settings, expected) => {
    expect(at(spec({ securityContext }, {}, settings), 'securityContext')).toEqual(expected);
  });

  const confined = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] }, readOnlyRootFilesystem: true };
  const root = { runAsNonRoot: false, runAsUser: 0, runAsGroup: 0 };
  test.each<readonly [string, object, Partial<ClusterWorkload>, object]>([
    ['by default', {}, {}, confined],
    ['with a GPU whose devices belong to root', {}, { backend: 'rocm' }, { ...confined, ...root }],
    [
      'with such a GPU and a user of the pod',
      { securityContext: { runAsUser: 7, supplementalGroups: [44] } },
      { backend: 'rocm' },
      confined,
    ],
    [
      'with a capability',
      { server: { securityContext: { capabilities: { add: ['SYS_NICE'] } } } },
      {},
      { ...confined, capabilities: { add: ['SYS_NICE'], drop: ['ALL'] } },
    ],
    [
      'that is privileged',
      { server: { securityContext: { privileged: true } } },
      {},
      { privileged: true, capabilities: { drop: ['ALL'] }, readOnlyRootFilesystem: true },
    ],
  ])('of the server %s', (_, pod, cluster, expected) => {
    expect(at(server(pod, cluster), 'securityContext')).toEqual(expected);
  });

  test('of the pods pass the Pod Security level "restricted" unless the overlay says otherwise', () => {
    for (const pod of [{}, { labels: { a: 'b' } }, { securityContext: { runAsUser: 7 }, server: { resources: { limits: { cpu: 1 } } } }]) {
      for (const container of [server(pod), model(pod)]) expect(at(container, 'securityContext')).toMatchObject(confined);
      expect(at(spec(pod), 'securityContext')).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
    }
  });
});

describe('containers', () => {
  const variables = (container: unknown) => Object(at(container, 'env') ?? []).map(({ name }: Json) => name);

  test('get variables after those of whole Secrets, and the variables of the slot last', () => {
    const pod = { server: { envFrom: [{ secretRef: { name: 'a' } }] } };
    expect(at(server(pod), 'envFrom')).toEqual([{ secretRef: { name: 'a' } }, { configMapRef: { name: 'svc-slot-primary-0123456789ab' } }]);
  });

  test('get proxies, unless the slot has its own', () => {
    const settings = { podProxy: { HTTPS_PROXY: 'http://proxy.example', NO_PROXY: 'localhost' } };
    expect(variables(server({}, {}, settings))).toEqual(['HTTPS_PROXY', 'https_proxy', 'NO_PROXY', 'no_proxy']);
    expect(variables(model({}, {}, settings))).toEqual(['SVC_MODELS_DIR', 'HTTPS_PROXY', 'https_proxy', 'NO_PROXY', 'no_proxy']);
    const pod = { server: { env: [{ name: 'https_proxy', value: 'http://mine' }] } };
    expect(variables(server(pod, {}, settings))).toEqual(['NO_PROXY', 'no_proxy', 'https_proxy']);
    expect(server({})).not.toHaveProperty('env');
  });

  test.each<readonly [string, object, object]>([
    [
      'CPU and storage',
      { limits: { cpu: 2, 'ephemeral-storage': '1Gi' } },
      { requests: { memory: '9Gi' }, limits: { cpu: '2', 'ephemeral-storage': '1Gi' } },
    ],
    ['less memory than the estimate', { requests: { memory: '1Gi' } }, { requests: { memory: '1Gi' } }],
    ['a limit below the estimate', { limits: { memory: '2Gi' } }, { requests: { memory: '2Gi' }, limits: { memory: '2Gi' } }],
    ['a limit above the estimate', { limits: { memory: '20Gi' } }, { requests: { memory: '9Gi' }, limits: { memory: '20Gi' } }],
  ])('get %s', (_, resources, expected) => {
    expect(at(server({ server: { resources } }), 'resources')).toEqual(expected);
  });

  test('keep the GPUs of the slot, whatever resource stands for them', () => {
    const SVC_GPU_RESOURCES = { cuda: 'nvidia.com/mig-1g.10gb' };
    const pod = { server: { resources: { limits: { 'nvidia.com/mig-1g.10gb': 7, cpu: 1 } } } };
    expect(at(server(pod, { backend: 'cuda', gpus: 2 }, { SVC_GPU_RESOURCES }), 'resources', 'limits')).toEqual({
      cpu: '1',
      'nvidia.com/mig-1g.10gb': '2',
    });
  });

  test('keep command, arguments, ports, probes, hooks and the volume of models, whatever the overlay is', () => {
    const OWN = ['name', 'image', 'command', 'args', 'ports', 'startupProbe', 'readinessProbe', 'livenessProbe', 'lifecycle'];
    fc.assert(
      fc.property(podOverlays, (pod) => {
        for (const key of OWN) expect(at(server(pod), key)).toEqual(at(server({}), key));
        expect(at(server(pod), 'volumeMounts')).toEqual(expect.arrayContaining(Object(at(server({}), 'volumeMounts'))));
        expect(at(spec(pod), 'volumes')).toEqual(expect.arrayContaining(Object(at(spec({}), 'volumes'))));
        expect(at(template(pod), 'metadata', 'labels')).toMatchObject(Object(at(template({}), 'metadata', 'labels')));
        for (const key of ['hostNetwork', 'hostPID', 'nodeName']) expect(spec(pod)).not.toHaveProperty(key);
      }),
      { numRuns: 60 },
    );
  });
});

describe('drift of overlaid fields', () => {
  function altered(pod: object, edit: (stored: Json) => Json = (stored) => stored): readonly string[] {
    const workload = kubeWorkload({ cluster: { pod: PodOverlay.parse(pod) } });
    const snapshot = snapshotOf([workload], [], context({ podProxy: { HTTPS_PROXY: 'http://proxy.example' } }));
    const deployments = new Map(
      [...snapshot.deployments].map(([name, object]): readonly [string, KubeObject] => [
        name,
        { ...object, spec: edit(Object(asServerStores(object['spec']))) },
      ]),
    );
    const observer = createKubeObserver();
    const [found] = observer.observe({ ...snapshot, deployments });
    const record = found === undefined ? undefined : observer.recordOf(found);
    if (record === undefined) throw new Error('There is no Deployment');
    return findAlteredObjects(workload, record, OWNER);
  }

  test('is not reported for what a server fills in, drops or writes in another form', () => {
    expect(altered(RICH_OVERLAY)).toEqual([]);
    fc.assert(
      fc.property(podOverlays, (pod) => {
        expect(altered(pod)).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  const edited = (text: string, replacement: string) => (stored: Json) => {
    const before = JSON.stringify(stored);
    const after = before.replace(text, replacement);
    if (before === after) throw new Error(`There is no ${text} in ${before}`);
    return JSON.parse(after);
  };

  test.each([
    ['"cpu":"2"', '"cpu":"3"', 'resources.limits.cpu "3" instead of "2000m"'],
    ['"ephemeral-storage":"64Mi"', '"ephemeral-storage":"65Mi"', 'resources.requests.ephemeral-storage "65Mi" instead of "64Mi"'],
    ['"priorityClassName":"inference"', '"priorityClassName":"other"', 'priorityClassName "other" instead of "inference"'],
    ['"team":"search"', '"team":"other"', 'labels.team "other" instead of "search"'],
    ['"secretName":"credentials"', '"secretName":"other"', 'volumes[credentials].secret.secretName "other" instead of "credentials"'],
    ['"name":"registry"', '"name":"other"', 'imagePullSecrets[registry] missing'],
    ['"maxSkew":1', '"maxSkew":2', 'topologySpreadConstraints[kubernetes.io/hostname,ScheduleAnyway].maxSkew 2 instead of 1'],
    ['"value":"quiet"', '"value":"loud"', 'env[MODE].value changed'],
    ['"runAsUser":1000680000', '"runAsUser":0', 'securityContext.runAsUser 0 instead of 1000680000'],
    ['"weight":50', '"weight":51', expect.stringMatching(/^affinity\.podAntiAffinity\.preferredDuring/)],
    [
      '"cache","emptyDir":{"sizeLimit":"1Gi"',
      '"cache","emptyDir":{"sizeLimit":"2Gi"',
      'volumes[cache].emptyDir.sizeLimit "2Gi" instead of "1024Mi"',
    ],
  ])('is reported when %s becomes %s', (text, replacement, phrase) => {
    expect(altered(RICH_OVERLAY, edited(text, replacement))).toEqual([phrase]);
  });

  test('is not reported when another client adds an entry to a list that is merged by keys', () => {
    const more = edited('"imagePullSecrets":[', '"imagePullSecrets":[{"name":"injected"},');
    expect(altered(RICH_OVERLAY, more)).toEqual([]);
  });

  test('is not reported for a variable of the provider that the overlay replaces', () => {
    expect(altered({ server: { env: [{ name: 'GREETING', value: 'other' }] } })).toEqual([]);
  });
});
