/** What replicas of the gateway cost, and what they cost the API server: at the start, at rest, and when the API server has restarted. */
import { setTimeout as pause } from 'node:timers/promises';
import { applySlotSpec, stopReplica, type Ground, type Replica } from './scale-ground.ts';
import type { KubeApi } from '../src/cluster/client/ports.ts';
import { parseLease } from '../src/cluster/leadership/decide/lease-record.ts';
import { LEASES } from '../src/cluster/client/decide/resource-path.ts';
import { CONTROLLER_LEASE } from '../src/schema/pod/kube-fields.ts';
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

/** Each replica asks each pod once in this time, all at about the same moment, so that a part of it would measure either all probes or none. */
const PROBES_EVERY_S = 60;
const REST_S = Math.max(1, Math.ceil(Number(process.env['SVC_BENCH_REST'] ?? PROBES_EVERY_S) / PROBES_EVERY_S)) * PROBES_EVERY_S;
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
      starts.push({ ...(await costBefore(replica)), seconds: (performance.now() - replica.service.startedAt) / 1000 });
    }
    await pause(PROBED_MS);
    await holdLease(ground.api, '');
    const leader = await untilLeader(ground.api, started);
    await pause(SETTLE_MS);
    const before = await Promise.all(started.map(costAfter));
    await pause(REST_S * 1000);
    const memory = await Promise.all(started.map(async ({ service }) => await residentMb(service.pid)));
    const after = await Promise.all(started.map(costBefore));
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

/** What was spent before this question, which itself costs something: it asks for all metrics. */
async function costBefore(replica: Replica): Promise<Cost> {
  const spent = await cpuSeconds(replica.service.pid);
  return { ...(await costAfter(replica)), cpuSeconds: spent };
}

/** What was spent up to now, with this question. */
async function costAfter({ service, link }: Replica): Promise<Cost> {
  const requests = [...(await service.requests()).values()].reduce((sum, count) => sum + count, 0);
  return { requests, megabytes: link.received() / 1e6, cpuSeconds: await cpuSeconds(service.pid) };
}

/** From the restart until every replica knows a slot that was applied after it. */
async function measureRestart(ground: Ground, started: readonly Replica[], slots: number): Promise<readonly Cost[] | undefined> {
  if (ground.restart === undefined) return undefined;
  const before = await Promise.all(started.map(costAfter));
  await ground.restart();
  const [late = ''] = slotNames(1, LATE_SLOTS + slots);
  await applySlotSpec(ground.api, late, { enabled: false });
  for (const { service, name } of started) {
    const isKnown = async (): Promise<boolean> => await service.knows(late);
    await waitUntil(isKnown, { withinMs: BOARD_MS, everyMs: 500, failure: () => `"${name}" does not know "${late}"` });
  }
  const after = await Promise.all(started.map(costBefore));
  return after.map((cost, index) => between(before[index], cost));
}

/** Makes somebody the leader who does nothing; nobody, if the name is empty. */
async function holdLease(api: KubeApi, holderIdentity: string): Promise<void> {
  const time = new Date().toISOString().replace('Z', '000Z');
  const spec = { holderIdentity, leaseDurationSeconds: holderIdentity === '' ? 1 : HELD_S, acquireTime: time, renewTime: time };
  const manifest = { metadata: { name: CONTROLLER_LEASE }, spec };
  unwrap(await api.apply(LEASES, manifest, { fieldManager: 'svc-bench' }, new AbortController().signal));
}

/** Asks the API server, since the metrics of a replica with thousands of slots cost it noticeable time. */
async function untilLeader(api: KubeApi, replicas: readonly Replica[]): Promise<Replica> {
  return await waitUntil(
    async () => {
      const lease = parseLease(unwrap(await api.get(LEASES, CONTROLLER_LEASE, new AbortController().signal)));
      const holder = replicas.find(({ name }) => name === lease.holder);
      return holder !== undefined && (await holder.service.leads()) ? holder : undefined;
    },
    { withinMs: LEAD_MS, everyMs: 1000, failure: () => 'No replica became the leader' },
  );
}

/** The board of a replica has all slots at once, as it lists them before its first pass. */
async function untilBoards(replicas: readonly Replica[], slots: number): Promise<void> {
  const [last = ''] = slotNames(1, slots - 1);
  for (const { service, name } of replicas) {
    const isComplete = async (): Promise<boolean> => await service.knows(last);
    await waitUntil(isComplete, { withinMs: BOARD_MS, everyMs: 500, failure: () => `The board of "${name}" does not have "${last}"` });
  }
}
