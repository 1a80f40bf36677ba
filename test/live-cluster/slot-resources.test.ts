/** Compares SlotSpecs, as users handle them with kubectl, to what the adapters derive from them. No controller runs: the tests report what a pass would. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createKubeApi } from '../../src/cluster/client/api-client.ts';
import type { KubeApi, Reflector } from '../../src/cluster/client/ports.ts';
import { createReflector } from '../../src/cluster/client/reflector.ts';
import { SLOT_SPECS } from '../../src/cluster/client/decide/resource-path.ts';
import type { DesiredState } from '../../src/reconciler/ports.ts';
import { createClock } from '../../src/platform/clock.ts';
import { createResourceEditor } from '../../src/cluster/slots/resource-editor.ts';
import { createResourceEvents } from '../../src/cluster/slots/resource-events.ts';
import { createSlotResources, type SlotResources } from '../../src/cluster/slots/slot-resources.ts';
import { createStatusResources, type StatusResources } from '../../src/cluster/slots/status-resources.ts';
import { ModelId, SlotName } from '../../src/schema/words/names.ts';
import { formatProblem } from '../../src/schema/slot/spec-problem.ts';
import type { Condition, SlotStatus, TimelineEntry } from '../../src/schema/status/slot-status.ts';
import { eventually } from '../support/eventually.ts';
import { describeWithCluster, kubectl as run } from '../support/require/require-cluster.ts';
import type { Reason } from '../../src/schema/status/reasons.ts';

const NAMESPACE = `svc-sources-${process.pid}`;
const nameOf = (name: string) => SlotName.parse(name);
const kubectl = async (args: readonly string[], input?: string) => await run(['--namespace', NAMESPACE, ...args], input);
const rejection = async (args: readonly string[], input?: string) =>
  await kubectl(args, input).then(
    (text) => `not rejected: ${text}`,
    (error: unknown) => String(error),
  );
const manifest = (name: string, spec: object, metadata: object = {}) =>
  JSON.stringify({ apiVersion: 'inference.svc.dev/v1alpha1', kind: 'SlotSpec', metadata: { name, ...metadata }, spec });
const apply = async (name: string, spec: object, metadata: object = {}) =>
  await kubectl(['apply', '--validate=false', '--filename', '-'], manifest(name, spec, metadata));
const gguf = (model: string, more: object = {}) => ({ provider: 'gguf', backend: 'cpu', model: { default: model }, ...more });

describeWithCluster('SlotSpecs in a cluster', () => {
  const ending = new AbortController();
  const leadership = { leads: () => true, term: () => ending.signal, changes: () => undefined };
  const requests: string[] = [];
  let api: KubeApi;
  let slots: Reflector;
  let source: SlotResources;
  const clock = createClock();
  const log = { info: () => undefined, warn: () => undefined };
  const createSink = (): StatusResources =>
    createStatusResources({ api, slots, leadership, generationOf: source.generationOf, lastGoodOf: source.lastGoodOf, clock, log });

  beforeAll(async () => {
    await run(['create', 'namespace', NAMESPACE]);
    const onRequest = ({ verb, resource }: { readonly verb: string; readonly resource: string }) =>
      void requests.push(`${verb} ${resource}`);
    const created = await createKubeApi({ env: process.env, namespace: NAMESPACE, version: 'test', onRequest });
    if (!created.ok) throw new Error(created.failure.message);
    api = created.value;
    slots = createReflector({ api, type: SLOT_SPECS });
    slots.start(ending.signal);
    await eventually('the first list', () => slots.health().kind === 'current');
    source = createSlotResources({ slots, log });
  }, 60_000);
  afterAll(async () => {
    ending.abort();
    await run(['delete', 'namespace', NAMESPACE, '--wait=false']);
  });

  /** Reads until the state fulfils the condition. */
  const reach = async (wanted: (state: DesiredState) => boolean): Promise<DesiredState> => {
    const deadline = Date.now() + 20_000;
    for (;;) {
      const read = await source.read(ending.signal);
      if (read.ok && wanted(read.value)) return read.value;
      if (Date.now() > deadline) throw new Error(`Not reached: ${JSON.stringify(read)}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const seen = async (name: string, generation = 1) => await reach((state) => state.slots.get(nameOf(name))?.generation === generation);
  const condition = (type: Condition['type'], status: Condition['status'], reason: Reason): Condition => ({
    type,
    status,
    reason,
    message: `About ${reason}`,
    lastTransitionAt: Date.now(),
    observedGeneration: 1,
  });
  const statusOf = (name: string, changes: Partial<SlotStatus> = {}): SlotStatus => {
    const desired = source.generationOf(nameOf(name)) ?? 0;
    const conditions = [
      condition('Ready', 'True', 'ProbePassed'),
      condition('Reconciling', 'False', 'AtRest'),
      condition('UpToDate', 'True', 'SpecInForce'),
      condition('Stalled', 'False', 'NotStalled'),
    ];
    const slot = { name: nameOf(name), state: 'ready', conditions, observedGeneration: desired, provider: 'gguf', backend: 'cpu' } as const;
    return {
      ...slot,
      model: ModelId.parse('demo-owl'),
      endpoint: 'http://10.0.0.9:8080',
      restarts: 0,
      since: Date.now(),
      replicas: { present: 1, ready: 1 },
      ...changes,
    };
  };
  const publish = async (sink: StatusResources, ...statuses: readonly SlotStatus[]) => {
    sink.write({ at: Date.now(), statuses, refused: new Map(), entries: [] });
    await sink.flush();
  };

  test('a published status is visible to "kubectl get", "kubectl wait" and autoscalers', async () => {
    await apply('primary', gguf('demo-owl'));
    await seen('primary');
    await publish(createSink(), statusOf('primary'));
    await kubectl(['wait', '--for=condition=UpToDate', 'slot/primary', '--timeout=10s']);
    const [head = '', row = ''] = (await kubectl(['get', 'slots', 'primary'])).trim().split('\n');
    expect(head.split(/\s+/)).toEqual(['NAME', 'STATE', 'MODEL', 'BACKEND', 'READY', 'UP-TO-DATE', 'REASON', 'AGE']);
    expect(row.split(/\s+/).slice(0, 7)).toEqual(['primary', 'ready', 'demo-owl', 'cpu', 'True', 'True', 'ProbePassed']);
    expect(await kubectl(['get', 'slot', 'primary', '--output', 'jsonpath={.status.endpoint}'])).toBe(
      `http://svc-slot-primary.${NAMESPACE}.svc:8080`,
    );
    const scale: unknown = JSON.parse(
      await run(['get', '--raw', `/apis/inference.svc.dev/v1alpha1/namespaces/${NAMESPACE}/slotspecs/primary/scale`]),
    );
    expect(scale).toMatchObject({ spec: { replicas: 1 }, status: { replicas: 1, selector: 'inference.svc.dev/slot=primary' } });
    await kubectl(['scale', 'slot/primary', '--replicas=3']);
    const state = await seen('primary', 2);
    expect(state.slots.get(nameOf('primary'))?.spec.cluster.replicas).toBe(3);
  });

  test('a new leader writes nothing that is already there, and a slot that is not wanted has no "Ready"', async () => {
    await apply('rest', gguf('demo-owl', { enabled: false }));
    await seen('rest');
    const resting = [
      condition('Ready', 'False', 'Disabled'),
      condition('Reconciling', 'False', 'AtRest'),
      condition('Stalled', 'False', 'NotStalled'),
    ];
    await publish(createSink(), statusOf('rest', { state: 'offline', conditions: resting }));
    const text = await kubectl(['get', 'slot', 'rest', '--output', 'json']);
    const before: {
      readonly metadata: { readonly resourceVersion: string };
      readonly status: { readonly conditions: readonly Condition[] };
    } = JSON.parse(text);
    expect(before.status.conditions.map(({ type, reason }) => `${type} ${reason}`)).toEqual(['Reconciling Disabled', 'Stalled NotStalled']);
    requests.length = 0;
    await publish(
      createSink(),
      statusOf('rest', { state: 'offline', conditions: resting.map((one) => ({ ...one, lastTransitionAt: Date.now() + 5000 })) }),
    );
    expect(requests).toEqual([]);
    expect(JSON.parse(await kubectl(['get', 'slot', 'rest', '--output', 'json']))).toMatchObject({
      metadata: { resourceVersion: before.metadata.resourceVersion },
    });
    expect(source.statuses().get(nameOf('rest'))?.conditions[0]).toMatchObject({ type: 'Ready', status: 'False', reason: 'Disabled' });
  });

  test('a refused spec is "Stalled" for the refused generation', async () => {
    await apply('refused', gguf('demo-owl'));
    await seen('refused');
    const problems = [{ path: ['model', 'context'], message: 'Use at most 4096' }];
    const sink = createSink();
    sink.write({ at: Date.now(), statuses: [], refused: new Map([[nameOf('refused'), problems]]), entries: [] });
    await sink.flush();
    await kubectl(['wait', '--for=condition=Stalled', 'slot/refused', '--timeout=10s']);
    const found = await kubectl([
      'get',
      'slot',
      'refused',
      '--output',
      'jsonpath={.status.observedGeneration} {.status.conditions[3].message}',
    ]);
    expect(found).toBe('1 model.context: Use at most 4096');
  });

  test('"kubectl describe" shows Events with their counts', async () => {
    await apply('crashing', gguf('demo-owl'));
    await seen('crashing');
    const events = createResourceEvents({
      api,
      ownerOf: source.ownerOf,
      leadership,
      instance: 'svc-0',
      clock,
      log,
    });
    const entry = (changes: Partial<TimelineEntry>): TimelineEntry => ({
      seq: 1,
      at: Date.now(),
      slot: nameOf('crashing'),
      kind: 'state',
      message: '',
      ...changes,
    });
    const crash = entry({ kind: 'failure', cause: 'ImagePullBackOff', message: 'Image "x" cannot be fetched: not found' });
    events.write({ at: 0, statuses: [], refused: new Map(), entries: [entry({ from: 'warming', to: 'ready' }), crash] });
    events.write({ at: 0, statuses: [], refused: new Map(), entries: [crash, crash] });
    let described = '';
    const isCounted = async (): Promise<boolean> => {
      described = await kubectl(['describe', 'slot', 'crashing']);
      return described.includes('(x3 over');
    };
    await eventually('the count of the repeated Event is written', isCounted, 30_000);
    expect(described).toMatch(/Normal +Ready +\S+ +svc-controller +From "warming" to "ready"/);
    expect(described).toMatch(/Warning +ImagePullBackOff +\S+ \(x3 over \S+\) +svc-controller +Image "x" cannot be fetched: not found/);
    const listed = await kubectl(['get', 'events', '--field-selector', 'involvedObject.name=crashing']);
    expect(listed).toMatch(/Warning +ImagePullBackOff +slotspec\/crashing +Image "x"/);
  });

  test('an edit by the editor and one by kubectl do not overwrite each other', async () => {
    const editor = createResourceEditor({ api, slots });
    await apply('edited', gguf('demo-owl', { env: { A: '1' } }), { labels: { team: 'x' } });
    await seen('edited');
    const opened = await kubectl(['get', 'slot', 'edited', '--output', 'json']);
    const ifMatch = (await editor.read(nameOf('edited')))?.resourceVersion ?? '';
    await publish(createSink(), statusOf('edited'));
    expect(await editor.patch(nameOf('edited'), { env: { A: null, B: '2' } }, { ifMatch })).toMatchObject({ kind: 'done' });
    // The request of "kubectl edit" when its editor closes.
    expect(await rejection(['replace', '--validate=false', '--filename', '-'], opened)).toMatch(/the object has been modified/);
    const next = (await editor.read(nameOf('edited')))?.resourceVersion ?? '';
    await kubectl(['patch', 'slot', 'edited', '--type=merge', '--patch', '{"spec":{"priority":7}}']);
    expect(await editor.patch(nameOf('edited'), { priority: 1 }, { ifMatch: next })).toMatchObject({ kind: 'conflict' });
    expect(await editor.put(nameOf('edited'), gguf('demo-fox'))).toMatchObject({ kind: 'done', created: false });
    expect(JSON.parse(await kubectl(['get', 'slot', 'edited', '--output', 'json']))).toMatchObject({
      metadata: { labels: { team: 'x' } },
      spec: { env: {}, priority: 0, model: { default: 'demo-fox' }, lifecycle: { idleTimeout: 'never' } },
      status: { state: 'ready' },
    });
    expect(
      await kubectl(['apply', '--validate=false', '--filename', '-'], manifest('edited', gguf('demo-owl'), { labels: { team: 'x' } })),
    ).toMatch(/configured/);
  });

  test('names the field that the server rejects, for kubectl and for the editor', async () => {
    const editor = createResourceEditor({ api, slots });
    expect(
      await rejection(['apply', '--validate=false', '--filename', '-'], manifest('bad', gguf('demo-owl', { priority: 5000 }))),
    ).toMatch(/spec\.priority/);
    expect(await editor.put(nameOf('bad'), gguf('demo-owl', { priority: 5000 }))).toMatchObject({
      kind: 'invalid',
      problems: [{ path: ['priority'] }],
    });
    // A rule that only the server enforces.
    const full = {
      ...api,
      create: async () => await api.apply(SLOT_SPECS, badManifest(), { fieldManager: 'test', dryRun: true }, ending.signal),
    };
    const result = await createResourceEditor({ api: full, slots }).put(nameOf('bad'), gguf('demo-owl'));
    expect(result.kind === 'invalid' ? result.problems.map((problem) => formatProblem(problem)) : result).toEqual([
      expect.stringMatching(/^load: /),
    ]);
    expect(await editor.put(nameOf('bad'), gguf('demo-owl'), { dryRun: true })).toMatchObject({ kind: 'done', created: true });
    expect(await kubectl(['get', 'slot', 'bad', '--ignore-not-found'])).toBe('');
  });

  test('"kubectl delete" removes a slot, and its status is no longer written', async () => {
    await apply('short', gguf('demo-owl'));
    await seen('short');
    const status = statusOf('short');
    const { uid } = source.ownerOf(nameOf('short')) ?? {};
    expect(await kubectl(['get', 'slot', 'short', '--output', 'jsonpath={.metadata.uid}'])).toBe(uid);
    await kubectl(['delete', 'slot', 'short']);
    await reach((state) => !state.slots.has(nameOf('short')));
    await publish(createSink(), status);
    expect(source.ownerOf(nameOf('short'))).toBeUndefined();
    expect(await kubectl(['get', 'slot', 'short', '--ignore-not-found'])).toBe('');
  });

  test('200 slots that start at once take about one status write each', async () => {
    const names = Array.from({ length: 200 }, (_, index) => `many-${index}`);
    await kubectl(['apply', '--validate=false', '--filename', '-'], names.map((name) => manifest(name, gguf('demo-owl'))).join('\n'));
    await reach((state) => names.every((name) => state.slots.has(nameOf(name))));
    const sink = createSink();
    requests.length = 0;
    const warming = [condition('Ready', 'False', 'Warming'), condition('Reconciling', 'True', 'Progressing')];
    for (const state of ['starting', 'warming'] as const) {
      sink.write({
        at: Date.now(),
        statuses: names.map((name) => statusOf(name, { state, conditions: warming })),
        refused: new Map(),
        entries: [],
      });
    }
    const began = Date.now();
    await publish(sink, ...names.map((name) => statusOf(name)));
    if (process.env['SVC_TEST_SHOW'] !== undefined) process.stderr.write(`${requests.length} writes in ${Date.now() - began} ms\n`);
    expect(new Set(requests)).toEqual(new Set(['patch slotspecs.inference.svc.dev/status']));
    expect(requests.length).toBeLessThan(250);
    const rows = (await kubectl(['get', 'slots', '--no-headers'])).split('\n').filter((row) => row.startsWith('many-'));
    expect(rows.filter((row) => /^\S+ +ready +demo-owl +cpu +True +True +ProbePassed/.test(row))).toHaveLength(200);
  }, 60_000);
});

function badManifest() {
  const spec = gguf('demo-owl', { load: 'sometimes' });
  return { apiVersion: 'inference.svc.dev/v1alpha1', kind: 'SlotSpec', metadata: { name: 'bad', namespace: NAMESPACE }, spec };
}
