/** What replicas of the gateway cost, and what they cost the API server: at the start, at rest, and when the API server has restarted. */
import { setTimeout as pause } from 'node:timers/promises';
import { applySlotSpec, stopReplica, type Ground, type Replica } from './scale-ground.ts';
import type { KubeApi } from '../src/cluster/client/ports.ts';
import { LEASES } from '../src/cluster/client/resource-types.ts';
import { CONTROLLER_LEASE } from '../src/schema/object-labels.ts';
import { slotNames, unwrap } from './cluster-bed.ts';
import { cpuSeconds, residentMb } from './service-process.ts';
import { waitUntil } from './wait-until.ts';

export interface Cost {
  readonly requests: number;
  readonly megabytes: number;
  readonly cpuSeconds: number;
}

export interface ReplicaCost {
  readonly leads: boolean;
  readonly memoryMb: number;
  readonly start: Cost & { readonly seconds: number };
  /** Per second. */
  readonly rest: Cost;
  /** Undefined if the API server cannot be restarted here. */
  readonly restart: Cost | undefined;
}

const REST_S = Number(process.env['SVC_BENCH_REST'] ?? 60);
/** Until statuses and reports that are not urgent are written. */
const SETTLE_MS = 25_000;
const BOARD_MS = 600_000;
/** Until followers have probed all slots. */
const PROBED_MS = 15_000;
const LEAD_MS = 600_000;
/** The number of the first slot that is applied after a restart. Every measurement takes another one, because the slots of the last one are still there. */
const LATE_SLOTS = 90_000;
/** Longer than any measurement. */
const HELD_S = 3600;

/** Starts replicas on slots at rest, and stops them again. `during` is called while all of them are at rest. */
export async function measureCost(
  ground: Ground,
  { slots, replicas, during }: { readonly slots: number; readonly replicas: number; readonly during?: (leader: Replica) => Promise<void> },
): Promise<readonly ReplicaCost[]> {
  const started: Replica[] = [];
  const starts: ReplicaCost['start'][] = [];
  try {
    // As followers first: the first leader ever would write an Event for each slot.
    await holdLease(ground.api, 'bench-nobody');
    for (let index = 0; index < replicas; index += 1) {
      const replica = await ground.startReplica(`bench-${index}`);
      started.push(replica);
      await untilBoards([replica], slots);
      starts.push({ ...(await readCost(replica)), seconds: (performance.now() - replica.service.startedAt) / 1000 });
    }
    await pause(PROBED_MS);
    await holdLease(ground.api, '');
    const leader = await untilLeader(started);
    await pause(SETTLE_MS);
    const before = await Promise.all(started.map(readCost));
    await pause(REST_S * 1000);
    const after = await Promise.all(started.map(readCost));
    const memory = await Promise.all(started.map(async ({ service }) => await residentMb(service.pid)));
    await during?.(leader);
    const restarts = await measureRestart(ground, started, slots);
    if (!(await leader.service.leads())) process.stdout.write('  the leader changed during the measurement, which makes it useless\n');
    return started.map((replica, index) => ({
      leads: replica === leader,
      memoryMb: memory[index] ?? 0,
      start: starts[index] ?? { ...NOTHING, seconds: 0 },
      rest: between(before[index], after[index], REST_S),
      restart: restarts?.[index],
    }));
  } finally {
    for (const replica of started) await stopReplica(replica);
  }
}

const NOTHING: Cost = { requests: 0, megabytes: 0, cpuSeconds: 0 };

function between(before: Cost = NOTHING, after: Cost = NOTHING, seconds = 1): Cost {
  return {
    requests: (after.requests - before.requests) / seconds,
    megabytes: (after.megabytes - before.megabytes) / seconds,
    cpuSeconds: (after.cpuSeconds - before.cpuSeconds) / seconds,
  };
}

async function readCost({ service, link }: Replica): Promise<Cost> {
  const requests = [...(await service.requests()).values()].reduce((sum, count) => sum + count, 0);
  return { requests, megabytes: link.received() / 1e6, cpuSeconds: await cpuSeconds(service.pid) };
}

/** From the restart until every replica knows a slot that was applied after it. */
async function measureRestart(ground: Ground, started: readonly Replica[], slots: number): Promise<readonly Cost[] | undefined> {
  if (ground.restart === undefined) return undefined;
  const before = await Promise.all(started.map(readCost));
  await ground.restart();
  const [late = ''] = slotNames(1, LATE_SLOTS + slots);
  await applySlotSpec(ground.api, late, { enabled: false });
  for (const { service, name } of started) {
    const isKnown = async (): Promise<boolean> => (await service.status()).some((slot) => slot.name === late);
    await waitUntil(isKnown, { withinMs: BOARD_MS, everyMs: 500, failure: () => `"${name}" does not know "${late}"` });
  }
  const after = await Promise.all(started.map(readCost));
  return after.map((cost, index) => between(before[index], cost));
}

/** Makes somebody the leader who does nothing; nobody, if the name is empty. */
async function holdLease(api: KubeApi, holderIdentity: string): Promise<void> {
  const time = new Date().toISOString().replace('Z', '000Z');
  const spec = { holderIdentity, leaseDurationSeconds: holderIdentity === '' ? 1 : HELD_S, acquireTime: time, renewTime: time };
  const manifest = { metadata: { name: CONTROLLER_LEASE }, spec };
  unwrap(await api.apply(LEASES, manifest, { fieldManager: 'svc-bench' }, new AbortController().signal));
}

async function untilLeader(replicas: readonly Replica[]): Promise<Replica> {
  const leads = async (replica: Replica): Promise<boolean> => await replica.service.leads();
  return await waitUntil(
    async () => {
      const all = await Promise.all(replicas.map(leads));
      return replicas.find((_, index) => all[index]);
    },
    { withinMs: LEAD_MS, everyMs: 100, failure: () => 'No replica became the leader' },
  );
}

async function untilBoards(replicas: readonly Replica[], slots: number): Promise<void> {
  for (const { service, name } of replicas) {
    let found = 0;
    const isComplete = async (): Promise<boolean> => (found = (await service.status()).length) >= slots;
    const failure = (): string => `The board of "${name}" has ${found} slots instead of ${slots}`;
    await waitUntil(isComplete, { withinMs: BOARD_MS, everyMs: 500, failure });
  }
}
