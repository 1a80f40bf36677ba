/** Checks the CustomResourceDefinition on a real API server with kubectl: rejections and their messages, defaults, and printed columns. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { parse, stringify } from 'yaml';
import { OUTSIDE_LIMITS, REFUSED_COMBINATIONS, WITHIN_LIMITS } from '../schema/refused-combinations.ts';
import { RICH_OVERLAY } from '../schema/rich-overlay.ts';
import { SLOT_VERSIONS } from '../../src/schema/words/name-rules.ts';
import { UNSEEN_STATUS } from '../../src/schema/slot/slot-resource.ts';
import { judge } from '../cluster/slots/decide/kstatus.ts';
import { eventually } from '../support/eventually.ts';
import { describeWithCluster, kubectl } from '../support/require/require-cluster.ts';

const NAMESPACE = `svc-crd-${process.pid}`;
const MODEL = { default: 'a.gguf' };
const inNamespace = async (args: readonly string[], input?: string) => kubectl(['--namespace', NAMESPACE, ...args], input);
const resource = (name: string, spec: object, more: object = {}) =>
  JSON.stringify({ apiVersion: 'inference.svc.dev/v1alpha1', kind: 'SlotSpec', metadata: { name }, spec, ...more });

/** What "kubectl create --dry-run=server" sends after it has fetched the schemas of all resources, which takes most of a second of a core. */
const DRY_RUN = `/apis/inference.svc.dev/v1alpha1/namespaces/${NAMESPACE}/slotspecs?dryRun=All&fieldValidation=Strict`;

/** Returns the API server's error for a new slot; empty if it accepts the slot. Nothing is stored. */
async function rejection(name: string, spec: object): Promise<string> {
  return kubectl(['create', '--raw', DRY_RUN, '--filename', '-'], resource(name, spec)).then(
    () => '',
    (error: Error) => error.message,
  );
}

const fieldOf = async (name: string, jsonPath: string) => inNamespace(['get', 'slot', name, '--output', `jsonpath={${jsonPath}}`]);

describeWithCluster('The definition of slots', () => {
  beforeAll(async () => {
    await kubectl(['delete', 'namespace', NAMESPACE, '--ignore-not-found', '--timeout=120s']);
    await kubectl(['create', 'namespace', NAMESPACE]);
    await inNamespace(['create', '--filename', '-'], resource('primary', { model: MODEL }));
  }, 180_000);
  afterAll(async () => void (await kubectl(['delete', 'namespace', NAMESPACE, '--ignore-not-found', '--timeout=120s'])), 180_000);

  test('fills in every default', async () => {
    expect(JSON.parse(await fieldOf('primary', '.spec'))).toEqual({
      enabled: true,
      priority: 0,
      load: 'always',
      model: { default: 'a.gguf', aliases: [], args: [], presets: {} },
      lifecycle: {
        idleTimeout: 'never',
        startTimeout: '5m',
        drainTimeout: '30s',
        swap: 'auto',
        drift: 'repair',
        keepPrompts: true,
        warm: [],
        prewarm: 'never',
      },
      resources: {},
      env: {},
      replicas: 1,
      nodeSelector: {},
      tolerations: [],
    });
  });

  test.each<readonly [name: string, spec: object, message: RegExp]>([
    ['primary', {}, /spec\.model: Required value/],
    ['primary', { model: {} }, /spec\.model\.default: Required value/],
    ['primary', { model: { default: '../a' } }, /spec\.model\.default: .*: A model id consists of letters, digits/],
    ['primary', { model: { ...MODEL, context: 1 } }, /spec\.model\.context: Invalid value: 1: .*greater than or equal to 64/],
    ['primary', { model: MODEL, replicas: -1 }, /spec\.replicas: Invalid value: -1/],
    ['primary', { model: MODEL, replicas: 1001 }, /spec\.replicas: Invalid value: 1001: .*less than or equal to 1000/],
    ['primary', { model: MODEL, priority: 'high' }, /spec\.priority: .*must be of type integer/],
    ['primary', { model: MODEL, load: 'never' }, /spec\.load: Unsupported value: "never": supported values: "always", "on-demand"/],
    ['primary', { model: MODEL, lifecycle: { idleTimeout: 'soon' } }, /spec\.lifecycle\.idleTimeout: .*: Write a duration .*, or "never"/],
    ['primary', { model: MODEL, lifecycle: { startTimeout: '5 min' } }, /spec\.lifecycle\.startTimeout: .*: Write a duration/],
    ['primary', { model: MODEL, resources: { memory: '5X' } }, /spec\.resources\.memory: .*: Write a size/],
    ['primary', { model: MODEL, restartedAt: '2026-01-31T12:00:00+01:00' }, /spec\.restartedAt: Invalid value/],
    ['primary', { model: MODEL, storage: { hostPath: 'models' } }, /spec\.storage\.hostPath: Invalid value/],
    ['primary', { model: MODEL, env: { '1A': 'x' } }, /spec\.env: .*: The name of an environment variable consists of/],
    [
      'primary',
      { model: MODEL, backend: 'npu' },
      /spec\.backend: .*The default provider "gguf" does not support this backend; use "vulkan"/,
    ],
    [
      'mine',
      { model: MODEL, provider: 'npu', backend: 'cuda' },
      /spec\.backend: .*Provider "npu" does not support this backend; use "npu"/,
    ],
    ['a--b', { model: MODEL, provider: 'stt' }, /metadata\.name: A slot name consists of lower-case letters/],
    ['a'.repeat(41), { model: MODEL, provider: 'stt' }, /metadata\.name: A slot name .* at most 40 characters/],
    ['primary', { model: MODEL, bakend: 'cpu' }, /unknown field "spec\.bakend"/],
  ])('rejects "%s" with %j and names the field', async (name, spec, message) => {
    expect(await rejection(name, spec)).toMatch(message);
  });

  test.each(['whisper-or-so', 'a-model-of-a-later-catalogue', 'hf:owner/repo'])(
    'leaves it to the gateway to know the model "%s"',
    async (id) => {
      expect(await rejection('mine', { model: { default: id } })).toBe('');
    },
  );

  test.each(REFUSED_COMBINATIONS.map(([part, path]) => [path, part] as const))('rejects a combination at "%s"', async (path, part) => {
    const rejected = await rejection('primary', { model: MODEL, ...part });
    expect(rejected).toContain(`spec.${path.replaceAll(/\.(\d+)/g, '[$1]')}: `);
  });

  test.each(OUTSIDE_LIMITS)('rejects %j, which is outside of the limits', async (part, path, limits) => {
    const rejected = await rejection('primary', { model: MODEL, ...part });
    expect(rejected).toContain(`spec.${path}: `);
    expect(rejected).toContain(limits);
  });

  test.each(WITHIN_LIMITS)('accepts %j, which is within the limits', async (part) => {
    expect(await rejection('embed', { model: MODEL, ...part })).toBe('');
  });

  test.each<readonly [pod: object, message: RegExp]>([
    [{ hostNetwork: true }, /unknown field "spec\.pod\.hostNetwork"/],
    [{ server: { image: 'x' } }, /unknown field "spec\.pod\.server\.image"/],
    [{ server: { resources: { limits: { cpu: 'two' } } } }, /spec\.pod\.server\.resources\.limits\.cpu: Invalid value/],
    [{ volumes: ['a', 'a'].map((name) => ({ name, emptyDir: {} })) }, /spec\.pod\.volumes\[1\]: Duplicate value/],
    [{ imagePullSecrets: [{ name: 'Not a name' }] }, /spec\.pod\.imagePullSecrets\[0\]\.name: Invalid value/],
  ])('rejects the overlay %j', async (pod, message) => {
    expect(await rejection('primary', { model: MODEL, pod })).toMatch(message);
  });

  test('accepts a slot that uses every key', async () => {
    const spec = {
      enabled: false,
      provider: 'gguf',
      backend: 'cuda',
      priority: -5,
      load: 'on-demand',
      restartedAt: '2026-01-31T12:00:00.5Z',
      model: { default: 'dir/a.gguf', aliases: ['b'], context: 4096, args: ['--flash-attn'] },
      lifecycle: { idleTimeout: '15m', startTimeout: '90s', drainTimeout: '1.5h', swap: 'blue-green', drift: 'warn' },
      resources: { memory: '9Gi', gpus: 2 },
      env: { CUDA_VISIBLE_DEVICES: '0' },
      replicas: 3,
      nodeSelector: { disk: 'fast' },
      tolerations: [{ key: 'a', effect: 'NoExecute', tolerationSeconds: 30 }, { operator: 'Exists' }],
      storage: { size: '20Gi', className: 'fast', accessModes: ['ReadWriteMany'] },
      serviceAccountName: 'other',
      // The limit of memory is in "resources" here.
      pod: { ...RICH_OVERLAY, server: { ...RICH_OVERLAY.server, resources: { requests: { cpu: 2, 'ephemeral-storage': '1Gi' } } } },
    };
    expect(await rejection('whole', spec)).toBe('');
  });

  test('prunes an unknown key without strict validation', async () => {
    await inNamespace(['create', '--validate=false', '--filename', '-'], resource('stt', { model: MODEL, bakend: 'cpu' }));
    expect(JSON.parse(await fieldOf('stt', '.spec'))).not.toHaveProperty('bakend');
  });

  test('has a status subresource, whose conditions are merged by type', async () => {
    const condition = (type: string) => ({
      type,
      status: 'True',
      reason: 'Because',
      message: 'So',
      lastTransitionTime: '2026-01-31T12:00:00Z',
    });
    const apply = async (manager: string, status: object) => {
      const manifest = JSON.parse(resource('primary', {}, { status }));
      delete manifest.spec;
      await inNamespace(
        ['apply', '--server-side', '--subresource=status', `--field-manager=${manager}`, '--filename', '-'],
        JSON.stringify(manifest),
      );
    };
    const summary = { ready: 'True', reason: 'Because', message: 'So' };
    // Keys of the spec that this version of the definition does not know are kept, for a version that does.
    const lastGood = { generation: 1, spec: { model: { default: 'a.gguf' }, fromTomorrow: { deep: [1, null] } } };
    const status = { state: 'ready', model: 'a.gguf', backend: 'cpu', readyReplicas: 1, summary, lastGood, observedGeneration: 1 };
    await apply('one', { ...status, conditions: [condition('Ready')] });
    expect(JSON.parse(await fieldOf('primary', '.status'))).toMatchObject(status);
    await apply('two', { conditions: [condition('Checked')] });
    expect(await fieldOf('primary', '.status.conditions[*].type')).toBe('Ready Checked');
    await inNamespace(['patch', 'slot', 'primary', '--type=merge', '--patch', '{"status":{"state":"offline"}}']);
    expect(await fieldOf('primary', '.status.state')).toBe('ready');
    await expect(
      inNamespace(['patch', 'slot', 'primary', '--subresource=status', '--type=merge', '--patch', '{"status":{"state":"fine"}}']),
    ).rejects.toThrow(/status\.state: Unsupported value: "fine"/);
  });

  test('gives a new slot a status that says that nobody has looked at it, for which kstatus waits', async () => {
    const fresh = JSON.parse(await inNamespace(['get', 'slot', 'stt', '--output', 'json']));
    expect(fresh.status).toEqual(UNSEEN_STATUS);
    expect(judge(fresh)).toBe('InProgress');
    expect(await inNamespace(['get', 'slot', 'stt', '--no-headers'])).toMatch(/^stt +Unknown +NotYetSeen +\d+/);
    // A user cannot write it, nor take it away.
    await inNamespace(['patch', 'slot', 'stt', '--type=merge', '--patch', '{"status":null}']);
    expect(await fieldOf('stt', '.status.observedGeneration')).toBe('-1');
  });

  test('shows columns, and more of them with "--output wide"', async () => {
    const [head, ...rows] = (await inNamespace(['get', 'slots'])).trim().split('\n');
    expect(head?.split(/\s+/)).toEqual(['NAME', 'STATE', 'MODEL', 'BACKEND', 'READY', 'UP-TO-DATE', 'REASON', 'AGE']);
    expect(rows[0]).toMatch(/^primary +ready +a\.gguf +cpu +True +Because +\d+/);
    const wide = await inNamespace(['get', 'slots', '--output', 'wide']);
    expect(wide).toMatch(/REASON +REPLICAS +RESTARTS +MESSAGE +AGE/);
    const slotColumns = await inNamespace(['get', 'inference']);
    expect(slotColumns).toContain('primary');
  });

  test('leaves "kubectl get svc" to Services', async () => {
    expect(await kubectl(['--namespace', 'default', 'get', 'svc', '--output', 'name'])).toContain('service/kubernetes');
  });

  test('scales, within its bounds', async () => {
    await inNamespace(['scale', 'slot/primary', '--replicas=3']);
    expect(await fieldOf('primary', '.spec.replicas')).toBe('3');
    await expect(inNamespace(['scale', 'slot/primary', '--replicas=1001'])).rejects.toThrow(/spec\.replicas/);
  });

  test('rejects a patch that would make a slot invalid, and keeps the previous spec', async () => {
    const patch = '{"spec":{"storage":{"claimName":"models","size":"1Gi"}}}';
    await expect(inNamespace(['patch', 'slot', 'primary', '--type=merge', '--patch', patch])).rejects.toThrow(/spec\.storage\.claimName/);
    expect(await fieldOf('primary', '.spec.storage')).toBe('');
  });

  test('is the same slot in both versions, whichever wrote it', async () => {
    const asVersion = (version: string, name: string) =>
      resource(name, { model: MODEL, priority: 7 }).replace('svc.dev/v1alpha1', `svc.dev/${version}`);
    const read = async (version: string, name: string): Promise<Readonly<Record<string, unknown>>> =>
      JSON.parse(await inNamespace(['get', `slotspecs.${version}.inference.svc.dev`, name, '--output', 'json']));
    for (const [index, version] of SLOT_VERSIONS.entries()) {
      const name = ['tts', 'rerank'][index] ?? '';
      await inNamespace(['create', '--filename', '-'], asVersion(version, name));
      const [first, ...others] = await Promise.all(SLOT_VERSIONS.map(async (each) => await read(each, name)));
      expect(first).toMatchObject({ apiVersion: 'inference.svc.dev/v1alpha1', spec: { priority: 7, replicas: 1 } });
      for (const other of others) expect({ ...other, apiVersion: first?.['apiVersion'], metadata: {} }).toEqual({ ...first, metadata: {} });
    }
  });

  test('is explained', async () => {
    const [plural, remove] = await explainedKind();
    const explainedIn = async (path: string) => kubectl(['explain', `${plural}.${path}`]);
    try {
      const explained = await explainedIn('spec.model');
      expect(explained).toContain('The model that the slot serves');
      expect(explained).toMatch(/default\s+<string> -required-\s+Model to serve: an id from the catalogue/);
      expect(explained).toMatch(/context\s+<integer>\s+Context length in tokens/);
      expect(await explainedIn('spec')).not.toContain('Cluster only');
      const pod = await explainedIn('spec.pod');
      expect(pod).toMatch(/What is added to the pods, and changed in them, with the keys of a pod\s+template/);
      expect(pod).toMatch(/imagePullSecrets\s+<\[\]Object>\s+Secrets with credentials for registries/);
      expect(await explainedIn('spec.pod.server.env')).toMatch(/valueFrom\s+<Object>\s+Where the value comes from/);
    } finally {
      await remove();
    }
  }, 180_000);
});

/** If the API server that answers kubectl does not publish the schema itself, a copy of the definition under another name is explained. */
async function explainedKind(): Promise<readonly [plural: string, remove: () => Promise<unknown>]> {
  const isExplained = async (plural: string) =>
    kubectl(['explain', plural]).then(
      () => true,
      () => false,
    );
  if (await isExplained('slot')) return ['slot', async () => undefined];
  const text = await readFile(join(import.meta.dirname, '../../crds/slotspecs.inference.svc.dev.yaml'), 'utf8');
  const copy = parse(text);
  copy.metadata.name = 'explainedslots.explain.svc.dev';
  copy.spec.group = 'explain.svc.dev';
  copy.spec.names = { kind: 'ExplainedSlot', listKind: 'ExplainedSlotList', plural: 'explainedslots', singular: 'explainedslot' };
  const remove = async () => kubectl(['delete', 'crd', copy.metadata.name, '--ignore-not-found', '--timeout=60s']);
  // That of an earlier run that was ended may still be there.
  await remove();
  await kubectl(['apply', '--validate=false', '--filename', '-'], stringify(copy));
  // An API server publishes the schema some time after the definition.
  await eventually('the schema is published', async () => isExplained('explainedslots'), 60_000);
  return ['explainedslots', remove];
}
