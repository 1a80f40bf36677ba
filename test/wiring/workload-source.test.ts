import { expect, test } from '@jest/globals';
import { Revision, SlotName, WorkloadId } from '../../src/schema/words/names.ts';
import type { ObservedWorkload, RuntimeTraits } from '../../src/reconciler/ports.ts';
import { createWorkloadSource } from '../../src/wiring/service-parts.ts';
import { EMPTY_BOARD } from '../../src/reconciler/board.ts';
import { boardSlot } from '../gateway/support/board-fixture.ts';

const PRIMARY = SlotName.parse('primary');
const workload = (id: string, slot: string, more: Partial<ObservedWorkload> = {}): ObservedWorkload => ({
  id: WorkloadId.parse(id),
  name: `svc-slot-${slot}`,
  slot: SlotName.parse(slot),
  revision: Revision.parse('0123456789ab'),
  generation: 4,
  phase: 'running',
  startedAt: 0,
  endpoints: [],
  container: { imageId: undefined, argv: undefined, env: undefined, mounts: undefined, devices: undefined, port: undefined },
  ...more,
});
const OLD = workload('svc-slot-primary:4711:99', 'primary', {
  startedAt: 1_700_000_000_000,
  memoryBytes: { host: 2, mapped: 3, device: 7 },
});
const NEW = workload('svc-slot-primary--b:4712:100', 'primary', {
  phase: 'exited',
  exit: { code: 1, outOfMemory: false, at: 5, message: 'No' },
});
const SLOT = boardSlot({ name: 'primary', targets: [{ workload: OLD.id, port: 1 }] });

function listOf(kind: RuntimeTraits['kind'], workloads = [OLD, NEW, workload('other:1:1', 'other')]) {
  const traits: RuntimeTraits = { kind, images: false, network: 'shared', modelsTarget: undefined };
  const activity = new Map([[OLD.id, { inFlight: 3, lastUsedAt: 0, lastHeardAt: 0 }]]);
  const traffic = { read: () => ({ workloads: activity, demand: new Map() }) };
  const board = { current: () => ({ ...EMPTY_BOARD, slots: new Map([[PRIMARY, SLOT]]) }) };
  return createWorkloadSource({ board, loop: { workloads: () => workloads }, traffic }, { traits })(PRIMARY);
}

test('the workloads of a slot have their process, measured memory and requests', () => {
  expect(listOf('process')).toMatchObject([
    {
      name: 'svc-slot-primary',
      serving: true,
      generation: 4,
      pid: 4711,
      container: null,
      inFlight: 3,
      memoryBytes: 5,
      deviceMemoryBytes: 7,
    },
    { serving: false, phase: 'exited', pid: 4712, inFlight: 0, memoryBytes: null, startedAt: null, message: 'No' },
  ]);
  expect(listOf('process')[0]?.startedAt).toBe('2023-11-14T22:13:20.000Z');
});

test('a workload that is no process has no pid, and a container its short ID', () => {
  expect(listOf('podman', [workload('0123456789abcdef', 'primary')])).toMatchObject([{ pid: null, container: '0123456789ab' }]);
  expect(listOf('process', [workload('remote/primary/b', 'primary')])).toMatchObject([{ pid: null, container: null }]);
  expect(listOf('kube', [])).toEqual([]);
});
