/** Slots of every size on each recorded machine: what admission lets in stays in, also after a restart of the controller. */
import { describe, expect, test } from '@jest/globals';
import { memoriesOf } from '../../dashboard/src/decide/memory-shares.ts';
import type { Explanation, Hardware } from '../../dashboard/src/types.ts';
import { viewHardware } from '../../src/api/manage/decide/inventory-view.ts';
import { viewMemory } from '../../src/api/manage/decide/slot-view.ts';
import { formatSize } from '../../src/schema/words/quantities.ts';
import { findPools, HOST, NO_BYTES } from '../../src/reconciler/decide/facts/memory-pools.ts';
import { budgetOf } from '../../src/reconciler/remember/desire.ts';
import { RECORDED_MACHINES, recordedHardware, type RecordedMachine } from '../support/hardware/recorded-machines.ts';
import { expectRest } from '../support/live-cluster/expect-rest.ts';
import { createWorld, slotName, type World } from '../support/simulation/world.ts';

/** The share of a model that its server keeps in the memory of the host, as llama-server does for its buffers. */
const ON_HOST = 0.1;
const NAMES = ['primary', 'embed', 'mine'] as const;

/** Each number is a slot: its model's share of all the memory that models may use. */
const LOADS: readonly (readonly number[])[] = [[0.02], [0.3], [0.55], [0.9], [0.3, 0.3], [0.2, 0.2, 0.2], [0.9, 0.9], [0.5, 0.3, 0.1]];

function worldOf(name: RecordedMachine, shares: readonly number[]): World {
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
  const room = roomOf(devices.length > 0 && !isUnified ? devices : pools);
  const world = createWorld({
    host: { ...memory, hardware },
    provider: {
      estimateMemory: (_name, _spec, { sizeBytes }) => ({
        hostBytes: Math.floor(ON_HOST * sizeBytes),
        deviceBytes: Math.ceil((1 - ON_HOST) * sizeBytes),
      }),
    },
  });
  shares.forEach((share, index) => {
    world.setModel(`${index}.gguf`, 'present', Math.floor(share * room));
    world.edit(NAMES[index] ?? '', { model: { default: `${index}.gguf` }, load: 'always' });
  });
  return world;
}

const changesOf = (world: World): readonly string[] => [...world.changes()];

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
});
