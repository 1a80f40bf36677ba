/** The history of slots as ControllerRevisions, on the fake API server, behind the real source of slots. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { KubeApi } from '../../../src/cluster/client/ports.ts';
import { createReflector } from '../../../src/cluster/client/reflector.ts';
import { CONTROLLER_REVISIONS, SLOT_SPECS } from '../../../src/cluster/client/decide/resource-path.ts';
import { createResourceEditor } from '../../../src/cluster/slots/resource-editor.ts';
import { createRevisionResources } from '../../../src/cluster/slots/revision-resources.ts';
import { createSlotResources } from '../../../src/cluster/slots/slot-resources.ts';
import { createClock } from '../../../src/platform/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { startFakeKubeApi, type FakeKubeApi } from '../../support/kube/fake-kube-api.ts';
import { connectToFake } from '../../support/kube/fake-kube-client.ts';
import { condition, primary, READY, slotStatus } from './decide/status-fixture.ts';

const SPACE = 'default';
const model = (name: string, more: object = {}) => ({ model: { default: name }, ...more });

describe('createRevisionResources()', () => {
  let fake: FakeKubeApi;
  let api: KubeApi;
  let ends: AbortController;
  let leads: boolean;
  let warnings: string[];
  let world: Awaited<ReturnType<typeof open>>;

  async function open(most = 20) {
    const slots = createReflector({ api, type: SLOT_SPECS });
    slots.start(ends.signal);
    await eventually('the first list', () => slots.health().kind === 'current');
    const log = { info: () => undefined, warn: (_: unknown, message: string) => void warnings.push(message) };
    const source = createSlotResources({ slots, log });
    const revisions = createRevisionResources({
      ...source,
      api,
      slots,
      leadership: { leads: () => leads },
      most,
      clock: createClock(),
      log,
    });
    return { slots, source, revisions, editor: createResourceEditor({ api, slots }) };
  }
  beforeEach(async () => {
    leads = true;
    warnings = [];
    ends = new AbortController();
    fake = await startFakeKubeApi();
    api = await connectToFake(fake, SPACE);
    world = await open();
  });
  afterEach(async () => {
    ends.abort();
    await fake.close();
  });

  /** An edit through this replica, which a pass then reads and publishes. */
  async function edit(spec: object, { served = true, who = 'anna' } = {}): Promise<number> {
    const written = await world.editor.put(primary, spec);
    if (written.kind !== 'done') throw new Error(JSON.stringify(written));
    world.revisions.attribute(primary, written.slot.resourceVersion, { who });
    return await pass(served);
  }
  async function pass(served = true): Promise<number> {
    await world.source.read(ends.signal);
    const generation = world.source.generationOf(primary) ?? 0;
    const conditions = [...READY, condition('UpToDate', served ? 'True' : 'False', 'SpecInForce')];
    const statuses = [slotStatus({ conditions: conditions.map((each) => ({ ...each, observedGeneration: generation })) })];
    world.revisions.write({ statuses });
    return generation;
  }
  const list = async () => await world.revisions.list(primary);
  const outcomes = async () => (await list()).map(({ number, who, outcome }) => [number, who, outcome]);
  const until = async (expected: readonly unknown[]) =>
    await eventually(JSON.stringify(expected), async () => JSON.stringify(await outcomes()) === JSON.stringify(expected));

  test('keeps what was in force with its author and its outcome, for the SlotSpec to own', async () => {
    await edit(model('a'));
    await edit(model('b'), { served: false });
    await edit(model('c'), { who: 'bert' });
    await until([
      [1, 'anna', 'served'],
      [2, 'anna', 'never_ready'],
      [3, 'bert', 'served'],
    ]);
    expect((await list()).map(({ document }) => document)).toEqual([model('a'), model('b'), model('c')]);
    const [slot] = fake.objects(SLOT_SPECS);
    expect(fake.objects(CONTROLLER_REVISIONS).map(({ metadata: { ownerReferences = [] } }) => ownerReferences[0])).toMatchObject(
      [1, 2, 3].map(() => ({ kind: 'SlotSpec', name: 'primary', uid: slot?.metadata.uid })),
    );
    world = await open();
    await pass();
    expect(await outcomes()).toHaveLength(3);
  });

  test('a replica that does not lead adds the author only, and an edit with kubectl has none', async () => {
    leads = false;
    await edit(model('a'));
    await until([[1, 'anna', 'pending']]);
    leads = true;
    await pass();
    await until([[1, 'anna', 'served']]);
    fake.put(SLOT_SPECS, SPACE, { metadata: { name: 'primary' }, spec: model('b') });
    await eventually('the edit arrives', async () => (await pass()) === 2);
    await until([
      [1, 'anna', 'served'],
      [2, 'file', 'served'],
    ]);
  });

  test('a paused text, a text with a mistake and another number of replicas are no revisions', async () => {
    await edit(model('a', { replicas: 1 }));
    await edit(model('a', { replicas: 3 }));
    await edit(model('b', { rollout: { paused: true } }));
    fake.put(SLOT_SPECS, SPACE, { metadata: { name: 'primary' }, spec: { model: {} } });
    await eventually('the edit arrives', async () => (await pass()) === 4);
    await edit(model('c'));
    await until([
      [1, 'anna', 'served'],
      [5, 'anna', 'served'],
    ]);
  });

  test('keeps as many as it should, the newest', async () => {
    world = await open(3);
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      const number = await edit(model(name));
      await eventually('it is written', async () => (await list()).at(-1)?.number === number);
    }
    await eventually('the oldest are removed', () => fake.objects(CONTROLLER_REVISIONS).length === 3);
    expect((await list()).map(({ number }) => number)).toEqual([3, 4, 5]);
  });

  test('a slot that is made again inherits nothing, and what others have written is left out', async () => {
    await edit(model('a'));
    await until([[1, 'anna', 'served']]);
    await world.editor.remove(primary);
    await edit(model('b'));
    await until([[1, 'anna', 'served']]);
    const [own] = fake.objects(CONTROLLER_REVISIONS).slice(-1);
    const { ownerReferences = [], labels = {} } = own?.metadata ?? {};
    const metadata = { labels, ownerReferences };
    fake.put(CONTROLLER_REVISIONS, SPACE, { metadata: { ...metadata, name: 'damaged' }, revision: 2, data: { spec: 'x' } });
    fake.put(CONTROLLER_REVISIONS, SPACE, {
      metadata: { ...metadata, name: 'later', annotations: { 'inference.svc.dev/outcome': 'new' } },
      revision: 3,
      data: { spec: model('c') },
    });
    expect(await outcomes()).toEqual([
      [1, 'anna', 'served'],
      [3, 'file', 'pending'],
    ]);
  });

  test('without the right to write them, there is no history, which is said once', async () => {
    fake.faults.answer({ resource: 'controllerrevisions' }, { status: 403 }, 100);
    await edit(model('a'));
    await edit(model('b'));
    await eventually('it is said', () => warnings.some((line) => line.startsWith('Writing the history')));
    expect(await list()).toEqual([]);
    expect(warnings.filter((line) => line.startsWith('Writing the history'))).toHaveLength(1);
  });

  test('names another program that has written the spec, and neither kubectl nor this service', async () => {
    await edit(model('a'));
    fake.put(SLOT_SPECS, SPACE, { metadata: { name: 'primary' }, spec: model('b') });
    expect(await world.revisions.managerOf(primary)).toBeUndefined();
    await api.apply(SLOT_SPECS, { metadata: { name: 'primary' }, spec: model('c') }, { fieldManager: 'argocd-controller' }, ends.signal);
    expect(await world.revisions.managerOf(primary)).toBe('argocd-controller');
  });
});
