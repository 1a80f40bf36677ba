import { describe, expect, test } from '@jest/globals';
import { expectRest } from '../support/live-cluster/expect-rest.ts';
import { createWorld, slotName, type World, type WorldOptions } from '../support/simulation/world.ts';

const SIZE = 1000;

async function serving(
  options: WorldOptions = {},
  lifecycle: Readonly<Record<string, string>> = {},
): Promise<World & { edit2(model: string): void }> {
  const world = createWorld(options);
  for (const model of ['a.gguf', 'b.gguf']) world.setModel(model, 'present', SIZE);
  world.edit('primary', { model: { default: 'a.gguf' }, lifecycle });
  await world.reach('primary', 'ready');
  return { ...world, edit2: (model) => world.edit('primary', { model: { default: model }, lifecycle }) };
}

const models = (world: World): readonly string[] =>
  world.runtime.list().map(({ container }) => container.argv?.[2]?.replace('/models/', '') ?? '');
const served = (world: World): string => world.slot('primary').status.model;

/** What the timeline and the Events of a cluster say of swaps. */
const reported = (world: World): readonly string[] =>
  world
    .life()
    .reports.flatMap(({ entries }) => entries.filter(({ kind }) => kind === 'swap').map(({ message, cause }) => `${cause}: ${message}`));
const BEGUN = 'SwapStarted: Model "b.gguf" replaces model "a.gguf"';
const ENDED = 'SwapFinished: Model "b.gguf" answers now instead of model "a.gguf"';

describe('what is reported of a swap', () => {
  test.each([
    ['beside the old model', {}, {}],
    ['after the old model has drained', { env: { SVC_MEMORY_BUDGET: '1500' } }, {}],
    ['as the slot demands', {}, { swap: 'drain' }],
  ])('is when it begins and when it ends, once each: %s', async (_, options, lifecycle) => {
    const world = await serving(options, lifecycle);
    world.life().traffic.ask(slotName('primary'), 3000);
    await world.clock.advance(10);
    expect(reported(world)).toEqual([]);
    world.edit2('b.gguf');
    await world.clock.advance(20);
    expect(reported(world)).toEqual([BEGUN]);
    await world.clock.advance(60_000);
    expect(served(world)).toBe('b.gguf');
    expect(reported(world)).toEqual([BEGUN, ENDED]);
  });

  test('is nothing when the same server is only started again, or the slot was at rest', async () => {
    const world = await serving();
    const [workload] = world.runtime.list();
    if (workload !== undefined) world.runtime.exit(workload.id);
    await world.clock.advance(60_000);
    expect(world.slot('primary').status.state).toBe('ready');
    world.edit('primary', { enabled: false, model: { default: 'a.gguf' } });
    await world.reach('primary', 'offline');
    world.edit2('b.gguf');
    await world.reach('primary', 'ready');
    expect(reported(world)).toEqual([]);
  });

  test('names the last model that answered, where a second edit comes before the first is in force', async () => {
    const world = await serving({ readyMs: (model) => (model.includes('b.gguf') ? 100_000 : 50) });
    world.setModel('c.gguf', 'present', SIZE);
    world.edit2('b.gguf');
    await world.clock.advance(5000);
    world.edit2('c.gguf');
    await world.clock.advance(60_000);
    expect(reported(world)).toEqual([
      BEGUN,
      'SwapStarted: Model "c.gguf" replaces model "a.gguf"',
      'SwapFinished: Model "c.gguf" answers now instead of model "a.gguf"',
    ]);
  });

  test('is reported to its end by a controller that was started while it was under way', async () => {
    const world = await serving({ readyMs: (model) => (model.includes('b.gguf') ? 30_000 : 50) });
    world.edit2('b.gguf');
    await world.clock.advance(5000);
    await world.restart();
    await world.clock.advance(60_000);
    expect(served(world)).toBe('b.gguf');
    expect(reported(world).at(-1)).toMatch(/^SwapFinished: /);
  });

  test('says that a new server answers where the model is the same', async () => {
    const world = await serving();
    world.edit('primary', { model: { default: 'a.gguf', args: ['--threads', '1'] } });
    await world.clock.advance(60_000);
    expect(reported(world)).toEqual([
      'SwapStarted: A new server of model "a.gguf" replaces the present one',
      'SwapFinished: A new server of model "a.gguf" answers now',
    ]);
  });
});

describe('a swap', () => {
  test('goes beside the old model where both fit, and requests never wait', async () => {
    const world = await serving();
    const long = world.life().traffic.ask(slotName('primary'), 3000);
    await world.clock.advance(10);
    world.edit2('b.gguf');
    const states = new Set<string>();
    const asked = [];
    for (let step = 0; step < 400 && served(world) !== 'b.gguf'; step += 1) {
      await world.clock.advance(10);
      states.add(world.slot('primary').admission.kind);
      asked.push(world.life().traffic.ask(slotName('primary'), 5));
    }
    await world.clock.advance(10_000);
    expect(states).toEqual(new Set(['open']));
    expect([long, ...asked].every(({ answers }) => answers.join() === 'served')).toBe(true);
    expect(models(world)).toEqual(['b.gguf']);
    await expectRest(world);
  });

  test('drains first where only one fits; requests park meanwhile, and go to the new model', async () => {
    const world = await serving({ env: { SVC_MEMORY_BUDGET: '1500' } });
    const long = world.life().traffic.ask(slotName('primary'), 3000);
    await world.clock.advance(10);
    world.edit2('b.gguf');
    await world.reach('primary', 'unloading', 1000);
    const parked = world.life().traffic.ask(slotName('primary'), 5);
    await world.clock.advance(100);
    expect(models(world)).toEqual(['a.gguf']);
    expect(world.slot('primary').admission.kind).toBe('park');
    await world.clock.until(() => parked.answers.length > 0, 60_000);
    expect([long.answers, parked.answers]).toEqual([['served'], ['served']]);
    expect(served(world)).toBe('b.gguf');
    await expectRest(world);
  });

  test('drains when told to, though both fit', async () => {
    const world = await serving({}, { swap: 'drain' });
    world.edit2('b.gguf');
    const most: number[] = [];
    await world.clock.until(() => {
      most.push(world.runtime.list().length);
      return served(world) === 'b.gguf' && world.slot('primary').status.state === 'ready';
    }, 60_000);
    expect(Math.max(...most)).toBe(1);
    await expectRest(world);
  });

  test('fetches the new model while the old one serves', async () => {
    const world = await serving({ modelPullMs: () => 60_000 });
    world.setModel('c.gguf', 'pullable');
    world.edit2('c.gguf');
    await world.clock.advance(30_000);
    expect(world.slot('primary')).toMatchObject({ admission: { kind: 'open' }, status: { state: 'ready', model: 'a.gguf' } });
    expect(world.slot('primary').status.conditions).toContainEqual(expect.objectContaining({ type: 'Reconciling', status: 'True' }));
    await world.clock.until(() => served(world) === 'c.gguf', 60_000);
    await expectRest(world);
  });

  test('leaves the old model serving when the new one never gets ready, and says so', async () => {
    const world = await serving({ readyMs: (model) => (model.includes('b.gguf') ? Number.POSITIVE_INFINITY : 50) }, { startTimeout: '5s' });
    world.edit2('b.gguf');
    await world.clock.advance(60_000);
    const request = world.life().traffic.ask(slotName('primary'), 5);
    await world.clock.advance(100);
    expect(request.answers).toEqual(['served']);
    expect(served(world)).toBe('a.gguf');
    expect(world.slot('primary').status.conditions[0]).toMatchObject({ type: 'Ready', status: 'True', reason: 'PreviousServes' });
    expect(world.slot('primary').explain(world.clock.now())).toContain('did not answer within 5 s');
  });

  test('that is taken back before it is done leaves the old workload, by id', async () => {
    const world = await serving({ readyMs: (model) => (model.includes('b.gguf') ? 10_000 : 50) });
    const [before] = world.runtime.list();
    world.edit2('b.gguf');
    await world.clock.advance(2000);
    expect(models(world)).toEqual(['a.gguf', 'b.gguf']);
    world.edit2('a.gguf');
    await world.clock.advance(5000);
    expect(world.runtime.list().map(({ id }) => id)).toEqual([before?.id]);
    await expectRest(world);
  });

  test('replaces what was altered from outside, or only says so', async () => {
    const world = await serving();
    const alter = (): void => {
      const [workload] = world.runtime.list();
      if (workload !== undefined) world.runtime.alter(workload.id, { mounts: [] });
    };
    const before = world.runtime.list()[0]?.id;
    alter();
    await world.clock.until(() => world.runtime.list().length === 1 && world.runtime.list()[0]?.id !== before, 60_000);
    await expectRest(world);

    world.edit('primary', { model: { default: 'a.gguf' }, lifecycle: { drift: 'warn' } });
    await world.clock.advance(1000);
    const kept = world.runtime.list()[0]?.id;
    alter();
    await world.clock.advance(30_000);
    expect(world.runtime.list().map(({ id }) => id)).toEqual([kept]);
    expect(world.slot('primary').status.conditions).toContainEqual(expect.objectContaining({ type: 'DriftDetected', status: 'True' }));
    await expectRest(world);
  });
});

describe('a model that answers nonsense', () => {
  const state = (world: World, type: string) => world.slot('primary').status.conditions.find((each) => each.type === type);
  const nonsense = (model: string): boolean => model.includes('b.gguf');

  test('does not replace one that serves, and is given up after a second attempt', async () => {
    const started: string[] = [];
    const applyFailure = ({ argv }: { readonly argv: readonly string[] }) => void started.push(argv[2] ?? '');
    const world = await serving({ nonsense, behaviour: { applyFailure } });
    world.life().traffic.ask(slotName('primary'), 3000);
    world.edit2('b.gguf');
    for (let step = 0; step < 300; step += 1) {
      await world.clock.advance(100);
      expect(world.slot('primary').admission.kind).toBe('open');
    }
    expect(models(world)).toEqual(['a.gguf']);
    expect(served(world)).toBe('a.gguf');
    expect(state(world, 'Ready')).toMatchObject({
      status: 'True',
      reason: 'PreviousServes',
      message: expect.stringContaining('nonsense: zeros'),
    });
    expect(state(world, 'Stalled')).toMatchObject({
      status: 'True',
      reason: 'ModelAnswersNonsense',
      message: expect.stringContaining('svcctl slot restart primary'),
    });
    expect(started).toEqual(['/models/a.gguf', '/models/b.gguf', '/models/b.gguf']);
    await expectRest(world);
    world.edit2('a.gguf');
    await world.clock.advance(2000);
    expect(state(world, 'Stalled')).toMatchObject({ status: 'False' });
  });

  test('never becomes ready where nothing served before', async () => {
    const world = createWorld({ nonsense });
    world.setModel('b.gguf', 'present', SIZE);
    world.edit('primary', { model: { default: 'b.gguf' } });
    await world.clock.advance(10);
    const request = world.life().traffic.ask(slotName('primary'), 5);
    await world.clock.until(() => state(world, 'Stalled')?.status === 'True', 30_000);
    expect(state(world, 'Ready')).toMatchObject({ status: 'False', reason: 'ModelAnswersNonsense' });
    expect(world.slot('primary').admission).toMatchObject({ kind: 'refuse', code: 'slot.stalled' });
    expect(request.answers).not.toContain('served');
    expect(world.life().reports.flatMap(({ entries }) => entries)).not.toContainEqual(
      expect.objectContaining({ kind: 'state', message: expect.stringContaining('ready') }),
    );
    await expectRest(world);
  });
});

test('a model that its provider refuses is not started, the old one keeps serving, and the slot says why', async () => {
  const message = 'Set a reranker model: model "b.gguf" has no classifier head';
  const world = await serving({ provider: { objection: (_name, _spec, { id }) => (id === 'b.gguf' ? message : undefined) } });
  world.edit2('b.gguf');
  await world.clock.advance(60_000);
  expect(served(world)).toBe('a.gguf');
  expect(models(world)).toEqual(['a.gguf']);
  const { conditions } = world.slot('primary').status;
  expect(conditions.find(({ type }) => type === 'Stalled')).toMatchObject({ status: 'True', reason: 'ModelUnsuitable', message });
  world.edit2('a.gguf');
  await world.clock.advance(60_000);
  expect(world.slot('primary').status.conditions.find(({ type }) => type === 'Stalled')).toMatchObject({ status: 'False' });
});
