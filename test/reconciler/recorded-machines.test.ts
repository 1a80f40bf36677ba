/** Slots of every size on each recorded machine: what admission lets in stays in, also after a restart of the controller. */
import { describe, expect, test } from '@jest/globals';
import { memoriesOf } from '../../dashboard/src/decide/memory-shares.ts';
import type { Explanation, Hardware } from '../../dashboard/src/types.ts';
import { viewHardware } from '../../src/api/manage/decide/inventory-view.ts';
import { viewMemory } from '../../src/api/manage/decide/slot-view.ts';
import { formatSize } from '../../src/schema/words/quantities.ts';
import { findPools, HOST, NO_BYTES, poolsOfBackend } from '../../src/reconciler/decide/facts/memory-pools.ts';
import { budgetOf } from '../../src/reconciler/remember/desire.ts';
import { withBackends } from '../../src/reconciler/decide/facts/choose-backend.ts';
import { explainFit, findFit } from '../../src/reconciler/decide/fit.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { ModelId } from '../../src/schema/words/names.ts';
import { parseSlot, type SlotSpec } from '../../src/schema/slot/slot-spec.ts';
import { RECORDED_MACHINES, recordedHardware, type RecordedMachine } from '../support/hardware/recorded-machines.ts';
import { expectRest } from '../support/live-cluster/expect-rest.ts';
import { createWorld, FAKE_PROVIDER, slotName, type World } from '../support/simulation/world.ts';

/** The share of a model that its server keeps in the memory of the host, as llama-server does for its buffers. */
const ON_HOST = 0.1;
const NAMES = ['primary', 'embed', 'mine'] as const;

const demandOf = (sizeBytes: number, onHost: number) => ({
  hostBytes: Math.floor(onHost * sizeBytes),
  deviceBytes: Math.ceil((1 - onHost) * sizeBytes),
});

/** A model of twenty layers. */
const PROVIDER: Pick<Provider, 'estimateMemory' | 'splits' | 'startCmd'> = {
  estimateMemory: (_name, _spec, { sizeBytes }) => demandOf(sizeBytes, ON_HOST),
  splits: (_name, { model: { offload } }, { sizeBytes }) =>
    Array.from({ length: offload === 'auto' ? 18 : 0 }, (_, index) => ({
      demand: demandOf(sizeBytes, ON_HOST + (index + 1) / 20),
      env: { LAYERS_ON_HOST: String(index + 1) },
      onHost: `${index + 1} of 20 layers`,
    })),
  startCmd: (slot) => [...FAKE_PROVIDER.startCmd(slot), '--layers', slot.env?.['LAYERS_ON_HOST'] ?? '0'],
};

/** Each number is a slot: its model's share of all the memory that models may use. */
const LOADS: readonly (readonly number[])[] = [[0.02], [0.3], [0.55], [0.9], [0.3, 0.3], [0.2, 0.2, 0.2], [0.9, 0.9], [0.5, 0.3, 0.1]];

/** The pools of a machine without slots, and how much a model may take there. */
function memoryOf(name: RecordedMachine) {
  const hardware = recordedHardware(name);
  const memoryTotalBytes = hardware.memory?.totalBytes;
  const memory = { memoryTotalBytes, memoryAvailableBytes: hardware.memory?.availableBytes };
  const pools = findPools({
    ...memory,
    hostBudgetBytes: budgetOf({ SVC_MEMORY_BUDGET: undefined }, memoryTotalBytes),
    hardware,
    used: NO_BYTES,
  });
  const roomOf = (found: typeof pools): number =>
    found.reduce((sum, { budgetBytes = 0, othersBytes }) => sum + budgetBytes - othersBytes, 0);
  const devices = pools.filter(({ id }) => id !== HOST);
  const isUnified = hardware.devices.every(({ unified }) => unified);
  return { hardware, memory, pools, room: roomOf(devices.length > 0 && !isUnified ? devices : pools) };
}

function worldOf(name: RecordedMachine, shares: readonly number[]): World {
  const { hardware, memory, room } = memoryOf(name);
  const world = createWorld({ host: { ...memory, hardware }, provider: PROVIDER });
  shares.forEach((share, index) => {
    world.setModel(`${index}.gguf`, 'present', Math.floor(share * room));
    world.edit(NAMES[index] ?? '', { model: { default: `${index}.gguf` }, load: 'always' });
  });
  return world;
}

const changesOf = (world: World): readonly string[] => [...world.changes()];

/** Machines on which a model that is too large for their devices is divided. */
const splitOn: RecordedMachine[] = [];

describe.each(RECORDED_MACHINES)('on "%s"', (name) => {
  test.each(LOADS.map((shares) => ({ shares })))('slots of $shares start once or wait', async ({ shares }) => {
    const world = worldOf(name, shares);
    await world.clock.advance(600_000);
    const started = changesOf(world);
    expect(started.filter((text) => !text.startsWith('start'))).toEqual([]);
    expect(new Set(started).size).toBe(started.length);
    const running = world.runtime.list().map(({ id }) => id);
    expect(running).toHaveLength(started.length);
    await expectRest(world);
    await world.restart();
    await world.clock.advance(600_000);
    expect(changesOf(world)).toEqual(started);
    expect(world.runtime.list().map(({ id }) => id)).toEqual(running);
  });

  test.each([[0.3], [0.5, 0.3], [0.9]])('status, explanation and both pages name the same memory for slots of %p', async (...shares) => {
    const world = worldOf(name, shares);
    await world.clock.advance(60_000);
    const slots = [...world.life().board.current().slots.values()];
    for (const { status, memory, explain } of slots) {
      const placed = Object.values(memory?.placement ?? {}).reduce((sum, bytes) => sum + bytes, 0);
      expect(status.memoryBytes).toBe(placed);
      const isSplit = Object.values(memory?.placement ?? {}).filter((bytes) => bytes > 0).length > 1;
      if (!isSplit) expect(explain(world.clock.now())).toContain(`needs ${formatSize(placed)}`);
    }
    const hardware = recordedHardware(name);
    const { totalBytes: memoryTotalBytes, availableBytes: memoryAvailableBytes } = hardware.memory ?? {};
    // As the page gets them.
    const wire: { host: Hardware; explanations: Explanation[] } = JSON.parse(
      JSON.stringify({
        host: viewHardware({ memoryTotalBytes, memoryAvailableBytes, hardware }),
        explanations: slots.map(({ status, memory }) => ({ name: status.name, text: '', memory: viewMemory(memory) })),
      }),
    );
    const reserved = memoriesOf(wire.host, wire.explanations).reduce((sum, { reservedBytes }) => sum + reservedBytes, 0);
    expect(reserved).toBe(slots.reduce((sum, { status }) => sum + (status.state === 'offline' ? 0 : (status.memoryBytes ?? 0)), 0));
  });

  test('a slot that can never fit says so before anybody asks for it', async () => {
    const world = worldOf(name, [0.1]);
    world.setModel('huge.gguf', 'present', 4 * 2 ** 40);
    world.edit('mine', { model: { default: 'huge.gguf' }, load: 'on-demand' });
    await world.clock.advance(5000);
    const { status, admission, explain } = world.slot('mine');
    const upToDate = status.conditions.find(({ type }) => type === 'UpToDate');
    expect([status.state, upToDate]).toMatchObject(['offline', { status: 'False', reason: 'InsufficientMemory' }]);
    expect(upToDate?.message).toContain('The slot can never fit: it needs');
    expect(explain(world.clock.now())).toContain('because: The slot can never fit');
    expect(admission).toMatchObject({ kind: 'refuse', code: 'slot.insufficient_memory' });
    await expectRest(world);
  });

  test('a slot of half its memory is let in, and a swap ends with one server', async () => {
    const world = worldOf(name, [0.5]);
    await world.reach('primary', 'ready');
    world.setModel('next.gguf', 'present', 1000);
    world.edit('primary', { model: { default: 'next.gguf' }, load: 'always' });
    await world.clock.advance(120_000);
    expect(world.slot('primary').status).toMatchObject({ state: 'ready', model: 'next.gguf' });
    expect(world.runtime.list().filter(({ slot }) => slot === slotName('primary'))).toHaveLength(1);
  });

  test.each([0.02, 0.3, 0.55, 0.9, 0.99, 1.1, 1.5])('"fit" and plan agree about a model of %d of its memory', async (share) => {
    const world = worldOf(name, [share]);
    const fit = fitOf(name, Math.floor(share * memoryOf(name).room));
    await world.clock.advance(60_000);
    const { status, memory } = world.slot('primary');
    expect([memory?.admitted === true, memory?.split?.onHost]).toEqual([fit.fits, fit.split?.onHost]);
    expect(status.state).toBe(fit.fits ? 'ready' : 'offline');
    if (fit.fits) expect(memory?.placement).toEqual(fit.placement);
    await expectRest(world);
  });

  /** Devices with a memory of their own, with which a slot computes that names no backend. */
  const { own } = poolsOfBackend(recordedHardware(name), specOn(name).backend);
  const discrete = recordedHardware(name).devices.filter(({ id }) => own.includes(id));
  const host = recordedHardware(name).memory?.totalBytes ?? 0;
  const devices = discrete.reduce((sum, { memory }) => sum + (memory?.totalBytes ?? 0), 0);
  // Three quarters of a model that is half as large again as the devices, and a tenth of it for the process.
  const tooLarge = devices * 1.5;
  const isSplit = discrete.length > 0 && tooLarge * 0.5 < host * 0.8;

  if (!isSplit) return;
  splitOn.push(name);

  test('what is too large for the devices is split, once, and "fit", plan and explanation tell the same numbers', async () => {
    const world = worldOf(name, []);
    world.setModel('large.gguf', 'present', Math.floor(tooLarge));
    const fit = fitOf(name, Math.floor(tooLarge));
    world.edit('primary', { model: { default: 'large.gguf' }, load: 'always' });
    await world.clock.advance(600_000);
    const started = changesOf(world);
    expect(started).toHaveLength(1);
    const { status, memory, explain } = world.slot('primary');
    expect(status.state).toBe('ready');
    const [running] = world.runtime.list();
    const layers = running?.container.env?.['LAYERS_ON_HOST'] ?? '';
    expect(Number(layers)).toBeGreaterThan(0);
    expect(running?.container.argv).toEqual(expect.arrayContaining(['--layers', layers]));
    expect(memory).toMatchObject({ placement: fit.placement, split: { onHost: `${layers} of 20 layers` } });
    expect(fit).toMatchObject({ fits: true, split: { onHost: `${layers} of 20 layers` } });
    const text = explain(world.clock.now());
    const told = explainFit({ model: 'large.gguf', context: undefined, backend: 'vulkan' }, fit);
    expect(text).toContain(`the CPU computes ${layers} of 20 layers`);
    expect(told).toContain(`if the CPU computes ${layers} of 20 layers`);
    for (const [id, bytes] of Object.entries(fit.placement)) {
      expect(text).toContain(`${formatSize(bytes)} ${id === HOST ? 'of the host' : `of "${id}"`}`);
      expect(told).toContain(`${formatSize(bytes)} of the memory of ${id === HOST ? 'the host' : `device "${id}"`}`);
    }
    await expectRest(world);
    await world.restart();
    await world.clock.advance(600_000);
    expect(changesOf(world)).toEqual(started);
    const after = world.slot('primary').memory;
    expect(after?.split?.onHost).toBe(`${layers} of 20 layers`);
    expect(after?.placement['host']).toBe(fit.placement['host']);
  });

  test('a slot that asks for the devices alone is not split', async () => {
    const world = worldOf(name, []);
    world.setModel('large.gguf', 'present', Math.floor(tooLarge));
    world.edit('primary', { model: { default: 'large.gguf', offload: 'full' }, load: 'always' });
    await world.clock.advance(60_000);
    expect(changesOf(world)).toEqual([]);
    expect(world.slot('primary').status.conditions).toContainEqual(expect.objectContaining({ reason: 'InsufficientMemory' }));
  });
});

test('models are split on machines with large devices of their own', () => {
  expect(splitOn.length).toBeGreaterThanOrEqual(3);
});

/** As the management API asks before there is a slot. */
function fitOf(name: RecordedMachine, sizeBytes: number) {
  const { hardware, pools } = memoryOf(name);
  const model = { id: ModelId.parse('large.gguf'), hostPath: '', sizeBytes };
  return findFit({
    spec: specOn(name),
    estimate: (each) => PROVIDER.estimateMemory(slotName('fit'), each, model),
    splits: (each) => PROVIDER.splits?.(slotName('fit'), each, model) ?? [],
    hardware,
    pools,
    promised: NO_BYTES,
  });
}

/** A slot that names no backend, with the one that it gets on the machine. */
function specOn(name: RecordedMachine): SlotSpec {
  const parsed = parseSlot(slotName('fit'), { provider: 'gguf', model: { default: 'large.gguf' } });
  if (!parsed.ok) throw new Error('The spec is refused');
  const asked = new Map([['fit', { name: slotName('fit'), spec: parsed.spec, generation: 1, problems: [] }]]);
  return withBackends(asked, { providers: { gguf: FAKE_PROVIDER } }, recordedHardware(name)).get('fit')?.spec ?? parsed.spec;
}
