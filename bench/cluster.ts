/**
 * Cluster mode with the API server that `KUBECONFIG` names, and the controller as a process that has what a pod has: creating many slots at once, many
 * slots at rest, the delay of an edit, the cost of a start. `SVC_BENCH_SLOTS="100 500 2000"`: numbers of slots, each of which is measured; while the last
 * ones are created, the gateway is replaced by another one. Takes a quarter of an hour, mostly for the cluster's own controllers to create the pods.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { DEPLOYMENTS, PODS, SLOT_SPECS } from '../src/cluster/client/decide/resource-path.ts';
import { openPodAccount, whyNoPodAccount, type PodAccount } from './cluster-account.ts';
import { readWrites, writeBare } from './cluster-bare.ts';
import { CONNECTIONS, applySlot, openBed, slotNames, whyNoCluster, type Bed } from './cluster-bed.ts';
import { createTogether, type Burst } from './cluster-burst.ts';
import { measureEdits, untilReady } from './cluster-edits.ts';
import { simulateKubelet } from './cluster-kubelet.ts';
import { measureRouting } from './cluster-routing.ts';
import { startClusterService, type ClusterService } from './cluster-service.ts';
import { atMost, median, note, percentile, rowLine, type Row } from './measure.ts';
import { cpuSeconds, residentMb } from './service-process.ts';
import { waitUntil } from './wait-until.ts';

const SIZES = (process.env['SVC_BENCH_SLOTS'] ?? '100 500 2000').split(' ').map(Number);
const MANY = SIZES.at(-1) ?? 0;
const FEW = slotNames(5);
const STARTS = 3;
/** Number of slots in each bare loop; the time per slot is the same with more. */
const BARE = Math.min(300, MANY);
const REST_S = 60;
/** The cluster's controllers create about five pods per second. */
const QUIET_WITHIN_MS = 900_000;
/** The cluster counts as idle after this long without an event. */
const QUIET_S = 15;

interface Ground {
  readonly bed: Bed;
  readonly account: PodAccount;
  /** A namespace without a controller, and an account for it. */
  readonly bare: Bed;
  readonly bareAccount: PodAccount;
}

export async function measureCluster(): Promise<readonly Row[]> {
  const why = (await whyNoCluster()) ?? (await whyNoPodAccount());
  if (why !== undefined) return [{ what: 'cluster mode', figure: why, goal: 'all rows', met: undefined }];
  const ended = new AbortController();
  const bed = await openBed('slots');
  const bare = await openBed('bare');
  const ground = { bed, bare, account: await openPodAccount(bed.api), bareAccount: await openPodAccount(bare.api) };
  const running: Running = { service: await startClusterService(ground.account, bed.namespace) };
  try {
    await running.service.untilLeads();
    await simulateKubelet(bed, new Set(FEW), ended.signal);
    for (const slot of FEW) await applySlot(bed, slot);
    for (const slot of FEW) await untilReady(bed, slot);
    const rows: Row[] = [...(await measureStart(ground))];
    let present = FEW.length;
    for (const size of SIZES) {
      const measured = await measureSize(ground, running, { present, size }).catch((error: unknown) => String(error));
      if (typeof measured === 'string') return [...rows, { what: `${size} slots`, figure: measured, goal: 'all rows', met: undefined }];
      for (const row of measured) process.stdout.write(`    ${rowLine(row)}\n`);
      rows.push(...measured);
      present = size;
    }
    return [...rows, await measureRouting(MANY)];
  } finally {
    ended.abort();
    await running.service.stop();
    await Promise.all([ground.account.dispose(), ground.bareAccount.dispose()]);
    const removed = await Promise.allSettled([bed.dispose(), bare.dispose()]);
    for (const each of removed) if (each.status === 'rejected') process.stdout.write(`  ${String(each.reason)}\n`);
  }
}

/** The gateway that leads. */
interface Running {
  service: ClusterService;
}

async function measureSize(
  ground: Ground,
  running: Running,
  { present, size }: { readonly present: number; readonly size: number },
): Promise<readonly Row[]> {
  const { bed, account } = ground;
  const created = size - present;
  const paceBefore = await measureBare(ground, present * 10);
  const before = await costOf(running.service);
  const next = size === MANY ? await startClusterService(account, bed.namespace, 'bench-next') : undefined;
  const burst = await createTogether(bed, {
    names: slotNames(created, present),
    total: size,
    edited: FEW,
    inBetween: async () => {
      if (next === undefined) return;
      await running.service.stop();
      running.service = next;
    },
  });
  const cost = next === undefined ? costRows(created, before, await costOf(running.service)) : [];
  const pace = (paceBefore + (await measureBare(ground, present * 10 + 10_000))) / 2;
  await untilQuiet(bed, size);
  const rest = await measureRest(running.service, size);
  const edits = await measureEdits(bed, FEW);
  return [
    ...burstRows(size, created, burst, pace),
    ...cost,
    ...rest,
    delayRow(`${size} slots: an edit in place → Deployment`, edits.inPlace),
    delayRow(`${size} slots: an edit of the model → Deployment`, edits.model),
    requestRow(`${size} slots: meanwhile`, edits.requests),
  ];
}

/** p95 has the goal. */
function delayRow(what: string, delays: readonly number[]): Row {
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map((share) => percentile(delays, share));
  const row = atMost(`${what}, ${delays.length} times: p50, p95, p99`, p95 ?? Number.NaN, { limit: 200, unit: 'ms', digits: 0 });
  return { ...row, figure: `${p50?.toFixed(0)}, ${p95?.toFixed(0)}, ${p99?.toFixed(0)} ms`, goal: `p95 ${row.goal}` };
}

/** On a busy machine, no edit can be faster than two requests. */
function requestRow(what: string, requests: readonly number[]): Row {
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map((share) => percentile(requests, share).toFixed(0));
  return note(`${what}, one request to the API server: p50, p95, p99`, `${p50}, ${p95}, ${p99} ms`);
}

function burstRows(size: number, created: number, burst: Burst, pace: number): readonly Row[] {
  const meanwhile = size === MANY ? ' while the gateway is replaced' : '';
  const bareS = pace * created;
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map((share) => percentile(burst.createdMs, share) / 1000);
  return [
    atMost(`${created} slots at once${meanwhile}: until all Deployments, against a bare loop`, burst.deployedS / bareS, {
      limit: 1.5,
      unit: '×',
    }),
    note(`${created} slots at once: until all Deployments, and by a bare loop`, `${burst.deployedS.toFixed(1)} and ${bareS.toFixed(1)} s`),
    note(`${created} slots at once: until all statuses, against a bare loop`, `${(burst.reportedS / bareS).toFixed(2)} ×`),
    note(`${created} slots at once: SlotSpec → Deployment, p50, p95, p99`, `${p50?.toFixed(1)}, ${p95?.toFixed(1)}, ${p99?.toFixed(1)} s`),
    delayRow(`${created} slots at once: meanwhile, an edit of another slot → Deployment`, burst.editedMs),
    requestRow(`${created} slots at once: meanwhile`, burst.requestMs),
  ];
}

interface Cost {
  readonly cpuS: number;
  readonly requests: ReadonlyMap<string, number>;
}

async function costOf(service: ClusterService): Promise<Cost> {
  // The metrics of thousands of slots cost noticeable time.
  const requests = await service.requests();
  return { cpuS: await cpuSeconds(service.pid), requests };
}

/** Returns what was requested in between, by verb and resource. */
function requestsSince(before: Cost, after: Cost): readonly { readonly key: string; readonly more: number }[] {
  return [...after.requests].flatMap(([key, count]) => {
    const more = count - (before.requests.get(key) ?? 0);
    return more > 0 ? [{ key, more }] : [];
  });
}

function costRows(created: number, before: Cost, after: Cost): readonly Row[] {
  const sent = requestsSince(before, after);
  const perSlot = (count: number): string => (count / created).toFixed(2);
  process.stdout.write(`  requests per created slot: ${sent.map(({ key, more }) => `${perSlot(more)} ${key}`).join(', ')}\n`);
  const total = sent.reduce((sum, { more }) => sum + more, 0);
  return [
    note(`${created} slots at once: requests to the API server for each`, perSlot(total)),
    note(`${created} slots at once: CPU of the controller for each`, `${((1000 * (after.cpuS - before.cpuS)) / created).toFixed(1)} ms`),
  ];
}

/** Returns seconds per slot in a namespace without a controller, over as many connections as the controller uses. */
async function measureBare({ bed, bare, bareAccount }: Ground, first: number): Promise<number> {
  const writes = await readWrites(bed, FEW[0] ?? '');
  const { slotsS, objectsS } = await writeBare(bare, bareAccount, writes, { names: slotNames(BARE, first), atOnce: CONNECTIONS });
  const [slotMs, objectsMs] = [slotsS, objectsS].map((seconds) => ((seconds / BARE) * 1000).toFixed(1));
  process.stdout.write(`  bare loop, ms per slot: SlotSpec ${slotMs}, other objects ${objectsMs}\n`);
  return (slotsS + objectsS) / BARE;
}

/** Starts a second controller, which does not lead. */
async function measureStart({ bed, account }: Ground): Promise<readonly Row[]> {
  const listening: number[] = [];
  const board: number[] = [];
  let memoryMb = 0;
  for (let round = 0; round < STARTS; round += 1) {
    const service = await startClusterService(account, bed.namespace, `bench-${round}`);
    listening.push(service.listeningMs / 1000);
    board.push((await service.untilBoard(FEW.length)) / 1000);
    await pause(5000);
    memoryMb = await residentMb(service.pid);
    await service.stop();
  }
  return [
    atMost('start in a cluster: until it listens, median', median(listening), { limit: 1, unit: 's' }),
    atMost('start in a cluster: until the board has five slots, median', median(board), { limit: 1.5, unit: 's' }),
    atMost('memory with five slots', memoryMb, { limit: 130, unit: 'MB', digits: 0 }),
  ];
}

/**
 * Waits until all pods exist and the cluster's own controllers have nothing left to write. Quiet alone is not enough: while the controllers create the
 * pods of the bare loops, nothing happens in this namespace.
 */
async function untilQuiet(bed: Bed, pods: number): Promise<void> {
  const ended = new AbortController();
  let lastAt = performance.now();
  for (const type of [DEPLOYMENTS, PODS, SLOT_SPECS]) await bed.watch(type, ({ at }) => void (lastAt = at), ended.signal);
  const isQuiet = async (): Promise<boolean> => performance.now() - lastAt > QUIET_S * 1000 && (await bed.count(PODS)) >= pods;
  const failure = async (): Promise<string> => `The cluster has created ${await bed.count(PODS)} pods of ${pods}, or is still busy`;
  await waitUntil(isQuiet, { withinMs: QUIET_WITHIN_MS, everyMs: 1000, failure });
  ended.abort();
}

async function measureRest(service: ClusterService, slots: number): Promise<readonly Row[]> {
  const before = await costOf(service);
  await pause(REST_S * 1000);
  const cpuS = (await cpuSeconds(service.pid)) - before.cpuS;
  const memoryMb = await residentMb(service.pid);
  const sent = requestsSince(before, await costOf(service));
  process.stdout.write(`  requests at rest in ${REST_S} s: ${sent.map(({ key, more }) => `${more} ${key}`).join(', ')}\n`);
  const unexpected = sent.filter(({ key }) => !/leases|^watch |^list /.test(key)).reduce((sum, { more }) => sum + more, 0);
  return [
    atMost(`${slots} slots at rest: requests besides watches, lists and leases`, unexpected, { limit: 0, unit: '', digits: 0 }),
    note(`${slots} slots at rest: requests in a minute`, `${sent.reduce((sum, { more }) => sum + more, 0)}`),
    atMost(`${slots} slots at rest: memory`, memoryMb, { limit: 300, unit: 'MB', digits: 0 }),
    atMost(`${slots} slots at rest: CPU`, (100 * cpuS) / REST_S, { limit: 2, unit: '% of a core' }),
  ];
}
