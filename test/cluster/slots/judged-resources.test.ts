/** New models of SlotSpecs that are judged: by the leader, from whose status the other replicas and the next leader go on. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import { createCheckMaps } from '../../../src/cluster/slots/check-maps.ts';
import { createSlotResources, type SlotResources } from '../../../src/cluster/slots/slot-resources.ts';
import type { KubeObject } from '../../../src/cluster/client/ports.ts';
import type { DesiredSlot } from '../../../src/reconciler/ports.ts';
import type { Settlement } from '../../../src/evaluation/decide/rollout-state.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { createInMemoryKube, type MemoryKube } from '../../support/kube/in-memory-kube.ts';
import { createRandom, type Random } from '../../support/simulation/seeded-random.ts';

const PRIMARY = SlotName.parse('primary');
const signal = new AbortController().signal;
const CASE = { request: { messages: [{ role: 'user', content: 'Who?' }] }, expect: { contains: 'owl' } };
const LINE = JSON.stringify(CASE);
const textOf = (model: string, more: object = {}, rollout: object = { check: 'golden/cases.jsonl' }) => ({
  model: { default: model },
  rollout,
  ...more,
});
const verdict = (outcome: 'passed' | 'held' | 'rolled_back', revision: string, checks: string) =>
  ({ kind: 'verdict', verdict: { outcome, revision, checks, because: 'Too bad', misses: [] } }) satisfies DistributiveOmit<
    Settlement,
    'generation'
  >;

/** What a replica knows of the objects, which may be older than what is stored. */
function createReplica(kube: MemoryKube, maps: ReadonlyMap<string, KubeObject>) {
  let seen: ReadonlyMap<string, KubeObject> = new Map();
  let term: object | undefined;
  const source: SlotResources = createSlotResources({
    slots: { ...kube.slots, items: () => seen },
    log: kube.log,
    now: kube.clock.now,
    leads: () => term !== undefined,
    term: () => term ?? {},
    checks: createCheckMaps({ items: () => (term === undefined ? new Map() : maps), health: kube.slots.health, changes: () => undefined }),
  });
  return {
    source,
    leads: () => term !== undefined,
    sync: () => void (seen = kube.slots.items()),
    begin: () => void (term = {}),
    end: () => void (term = undefined),
    async read(): Promise<DesiredSlot | undefined> {
      const result = await source.read(signal);
      if (!result.ok) throw new Error(result.failure.message);
      return result.value.slots.get(PRIMARY);
    },
    /** As the leader's sink does. */
    writeStatus(): void {
      const { uid, generation } = kube.slots.items().get('primary')?.metadata ?? {};
      if (source.generationOf(PRIMARY) !== generation) return;
      const texts = { lastGood: source.lastGoodOf(PRIMARY, uid), rollout: source.rolloutOf(PRIMARY, uid) };
      kube.touch('primary', { status: JSON.parse(JSON.stringify({ observedGeneration: generation, ...texts })) });
    },
  };
}

const configMap = (text: string): KubeObject => ({ metadata: { name: 'golden' }, data: { 'cases.jsonl': text } });

describe('a SlotSpec whose new models are judged', () => {
  let kube: MemoryKube;
  let maps: Map<string, KubeObject>;
  let leader: ReturnType<typeof createReplica>;
  let follower: ReturnType<typeof createReplica>;
  beforeEach(async () => {
    kube = createInMemoryKube();
    maps = new Map([['golden', configMap(LINE)]]);
    leader = createReplica(kube, maps);
    follower = createReplica(kube, maps);
    leader.begin();
    await edit(textOf('a.gguf'));
    await settle({ kind: 'served', revision: 'rev-a', at: 1 });
  });
  const publish = async (): Promise<void> => {
    leader.writeStatus();
    for (const replica of [leader, follower]) {
      replica.sync();
      await replica.read();
    }
  };
  const edit = async (spec: object): Promise<void> => {
    kube.apply('primary', spec);
    for (const replica of [leader, follower]) {
      replica.sync();
      await replica.read();
    }
  };
  const settle = async (settlement: DistributiveOmit<Settlement, 'generation'>): Promise<void> => {
    leader.source.settle?.(PRIMARY, { generation: leader.source.generationOf(PRIMARY) ?? 0, ...settlement });
    await leader.read();
    await publish();
  };
  const digest = async (): Promise<string> => (await leader.read())?.rollout?.checks?.digest ?? '';

  test('is on trial on each replica from the edit on, and in force everywhere once it has passed', async () => {
    await edit(textOf('b.gguf'));
    for (const replica of [leader, follower])
      expect(await replica.read()).toMatchObject({
        spec: { model: { default: 'b.gguf' } },
        rollout: { isOnTrial: true, accepted: { revision: 'rev-a' } },
      });
    await settle(verdict('passed', 'rev-b', await digest()));
    expect(await follower.read()).toMatchObject({ rollout: { isOnTrial: true, verdict: { outcome: 'passed', revision: 'rev-b' } } });
    await settle({ kind: 'served', revision: 'rev-b', at: 2 });
    expect(await follower.read()).toMatchObject({ rollout: { isOnTrial: false, accepted: { revision: 'rev-b' } } });
  });

  test('is rolled back on each replica, and stays so for the next leader and a replica that starts', async () => {
    await edit(textOf('b.gguf'));
    await settle(verdict('rolled_back', 'rev-b', await digest()));
    const reverted = {
      generation: 2,
      spec: { model: { default: 'a.gguf' } },
      rollout: { isOnTrial: false, rolledBack: { verdict: { because: 'Too bad' } } },
    };
    const third = createReplica(kube, maps);
    third.sync();
    for (const replica of [leader, follower, third]) expect(await replica.read()).toMatchObject(reverted);
    leader.end();
    follower.begin();
    expect(await follower.read()).toMatchObject(reverted);
    // The revision that was rolled back is told from the one that is in force.
    const { uid } = kube.slots.items().get('primary')?.metadata ?? {};
    expect(follower.source.revisionOf(PRIMARY, uid)).toMatchObject({ generation: 2, spec: { model: { default: 'b.gguf' } } });
    expect(follower.source.lastGoodOf(PRIMARY, uid)).toMatchObject({ generation: 1, spec: { model: { default: 'a.gguf' } } });
  });

  test('an autoscaler neither tries a text again that was rolled back, nor is its number lost', async () => {
    await edit(textOf('b.gguf', { replicas: 1 }));
    await settle(verdict('rolled_back', 'rev-b', await digest()));
    await edit(textOf('b.gguf', { replicas: 4 }));
    for (const replica of [leader, follower])
      expect(await replica.read()).toMatchObject({
        spec: { model: { default: 'a.gguf' }, cluster: { replicas: 4 } },
        rollout: { isOnTrial: false, rolledBack: {} },
      });
  });

  test('other cases try it again, and a mistake in them is one of the slot', async () => {
    await edit(textOf('b.gguf'));
    await settle(verdict('rolled_back', 'rev-b', await digest()));
    maps.set('golden', configMap(`${LINE}\n${LINE}`));
    expect(await leader.read()).toMatchObject({ spec: { model: { default: 'b.gguf' } }, rollout: { isOnTrial: true } });
    maps.set('golden', configMap('no case'));
    expect(await leader.read()).toMatchObject({
      problems: [{ message: expect.stringContaining('"golden/cases.jsonl" has a mistake: Line 1') }],
    });
  });

  test.each([
    ['golden', '"golden" names no key: write the name of a ConfigMap and its key, such as "golden/cases.jsonl"'],
    ['silver/cases.jsonl', 'create "silver" with the label "inference.svc.dev/checks"'],
    ['golden/others.jsonl', 'add "others.jsonl" to "data" of the ConfigMap "golden"'],
  ])('a path that leads nowhere is a mistake: %s', async (check, message) => {
    await edit(textOf('b.gguf', {}, { check }));
    expect(await leader.read()).toMatchObject({
      spec: { model: { default: 'a.gguf' } },
      problems: [{ path: ['rollout', 'check'], message: expect.stringContaining(message) }],
    });
  });

  test('cases may be in the text, unless it is too large for the status', async () => {
    await edit(textOf('b.gguf', {}, { cases: [CASE] }));
    expect(await leader.read()).toMatchObject({ rollout: { isOnTrial: true, checks: { cases: [CASE] } } });
    const large = { ...CASE, request: { messages: [{ role: 'user', content: 'x'.repeat(15_000) }] } };
    await edit(textOf('c.gguf', {}, { cases: Array.from({ length: 20 }, () => large) }));
    expect(await leader.read()).toMatchObject({
      spec: { model: { default: 'b.gguf' } },
      problems: [{ path: ['rollout'], message: expect.stringContaining('at most 262144 characters') }],
    });
  });

  test('a model that is watched comes back to the text before, with its generation', async () => {
    await edit(textOf('a.gguf', {}, { watch: '10m' }));
    await edit(textOf('b.gguf', {}, { watch: '10m' }));
    await settle({ kind: 'served', revision: 'rev-b', at: 2 });
    expect(await follower.read()).toMatchObject({ rollout: { watched: { previous: { generation: 2 }, since: undefined } } });
    await settle(verdict('rolled_back', 'rev-b', ''));
    for (const replica of [leader, follower]) expect(await replica.read()).toMatchObject({ spec: { model: { default: 'a.gguf' } } });
    const { uid } = kube.slots.items().get('primary')?.metadata ?? {};
    expect(leader.source.lastGoodOf(PRIMARY, uid)).toMatchObject({ generation: 2 });
  });
});

test('a ConfigMap that could not be read is not one that is missing', async () => {
  let health: ReturnType<MemoryKube['slots']['health']> = { kind: 'unreachable', listed: false, sinceMs: 0, message: 'refused' };
  const checks = createCheckMaps({ items: () => new Map(), health: () => health, changes: () => undefined });
  const { rollout } = textOf('a.gguf');
  await checks.prepare([textOf('a.gguf')]);
  expect(checks.of({ paused: false, ...rollout })).toBeUndefined();
  health = { kind: 'current' };
  expect(checks.of({ paused: false, ...rollout })).toMatchObject({ problem: { path: ['rollout', 'check'] } });
  // Cases in the text need no ConfigMap.
  health = { kind: 'starting' };
  expect(checks.of({ paused: false, cases: [CASE] })).toMatchObject({ checks: { cases: [CASE] } });
});

type DistributiveOmit<Union, Key extends PropertyKey> = Union extends unknown ? Omit<Union, Key> : never;

/** They never pass. */
const BAD = new Set(['b.gguf', 'd.gguf']);
const MODELS = ['a.gguf', 'b.gguf', 'c.gguf', 'd.gguf'] as const;

/** Whether a replica may send requests to the workload of a model, by the rules of the planner. */
function permits(slot: DesiredSlot | undefined, model: string): boolean {
  const { accepted, verdict: said, rolledBack, isOnTrial } = slot?.rollout ?? {};
  if (accepted === undefined || accepted.revision === model) return true;
  if (rolledBack?.verdict.revision === model || slot?.spec.model.default !== model) return false;
  return isOnTrial !== true || (said?.revision === model && said.outcome === 'passed');
}

/** Three replicas with views that lag, leaders that are killed at any moment, edits, verdicts, autoscalers and other cases. */
async function play(random: Random): Promise<void> {
  const kube = createInMemoryKube();
  const maps = new Map([['golden', configMap(LINE)]]);
  const replicas = [createReplica(kube, maps), createReplica(kube, maps), createReplica(kube, maps)] as const;
  let leader = replicas[0];
  leader.begin();
  kube.apply('primary', textOf('a.gguf', { replicas: 1 }));
  leader.sync();
  await leader.read();
  leader.source.settle?.(PRIMARY, { kind: 'served', generation: 1, revision: 'a.gguf', at: 1 });
  await leader.read();
  leader.writeStatus();
  const check = async (): Promise<void> => {
    for (const replica of replicas) {
      const slot = await replica.read();
      for (const bad of BAD) expect([bad, permits(slot, bad)]).toEqual([bad, false]);
    }
  };
  const settle = async (): Promise<void> => {
    const slot = await leader.read();
    const generation = leader.source.generationOf(PRIMARY);
    if (slot?.rollout === undefined || generation === undefined) return;
    const { isOnTrial, checks, verdict: said } = slot.rollout;
    const model = slot.spec.model.default;
    // As the planner: it settles what serves, and what was judged.
    if (permits(slot, model) && slot.problems.length === 0)
      leader.source.settle?.(PRIMARY, { kind: 'served', generation, revision: model, at: 1 });
    else if (isOnTrial && said === undefined && checks !== undefined) {
      const outcome = BAD.has(model) ? random.pick(['held', 'rolled_back'] as const) : 'passed';
      leader.source.settle?.(PRIMARY, { generation, ...verdict(outcome, model, checks.digest) });
    } else if (said?.outcome === 'held') leader.source.settle?.(PRIMARY, { generation, ...verdict('rolled_back', model, said.checks) });
  };
  for (const replica of replicas) replica.sync();
  for (let step = 0; step < 60; step += 1) {
    const roll = random.int(0, 9);
    if (roll === 0) kube.apply('primary', textOf(random.pick(MODELS), { replicas: random.int(1, 3) }));
    else if (roll === 1) kube.apply('primary', random.pick<object>([{ model: 3 }, textOf('a.gguf', { priority: random.int(0, 3) })]));
    else if (roll === 2) maps.set('golden', configMap(Array.from({ length: random.int(1, 3) }, () => LINE).join('\n')));
    else if (roll <= 4) await settle();
    else if (roll === 5) leader.writeStatus();
    else if (roll === 6) {
      leader.end();
      leader = random.pick(replicas);
      // A new leader reads the newest state first.
      leader.sync();
      leader.begin();
    } else random.pick(replicas).sync();
    await check();
  }
  for (let round = 0; round < 6; round += 1) {
    leader.sync();
    await leader.read();
    await settle();
    await leader.read();
    leader.writeStatus();
  }
  for (const replica of replicas) replica.sync();
  const told = await Promise.all(replicas.map(async (replica) => outline(await replica.read())));
  expect(told).toEqual([told[0], told[0], told[0]]);
}

const outline = (slot: DesiredSlot | undefined) => ({
  model: slot?.spec.model.default,
  replicas: slot?.spec.cluster.replicas,
  accepted: slot?.rollout?.accepted?.revision,
  isOnTrial: slot?.rollout?.isOnTrial,
  rolledBack: slot?.rollout?.rolledBack?.document,
});

test('on no replica, a model gets requests that has not passed, and all agree in the end', async () => {
  const fresh = Math.floor(Math.random() * 2 ** 31);
  for (const seed of [...Array.from({ length: 200 }, (_, index) => index + 1), fresh]) {
    try {
      await play(createRandom(seed));
    } catch (error) {
      throw new Error(`Seed ${seed}: ${String(error)}`, { cause: error });
    }
  }
}, 120_000);
