/**
 * Cluster mode with the API server that `KUBECONFIG` names, and the controller as a process that has what a pod has: creating many slots, many slots at
 * rest, the delay of an edit, the cost of a start. Takes about ten minutes, mostly for the cluster's own controllers to create two thousand pods.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { CONFIG_MAPS, DEPLOYMENTS, PODS, SERVICES, SLOT_SPECS } from '../src/cluster/client/decide/resource-path.ts';
import { openPodAccount, whyNoPodAccount, type PodAccount } from './cluster-account.ts';
import { readWrites, writeBare } from './cluster-bare.ts';
import { applySlot, CONNECTIONS, forEachItem, openBed, slotNames, whyNoCluster, type Bed } from './cluster-bed.ts';
import { measureEdits, untilReady, type EditDelays } from './cluster-edits.ts';
import { simulateKubelet } from './cluster-kubelet.ts';
import { measureRouting } from './cluster-routing.ts';
import { startClusterService, type ClusterService } from './cluster-service.ts';
import { atMost, median, type Row } from './measure.ts';
import { cpuSeconds, residentMb } from './service-process.ts';
import { waitUntil } from './wait-until.ts';

const MANY = Number(process.env['SVC_BENCH_SLOTS'] ?? 2000);
const FEW = slotNames(5);
const STARTS = 3;
/** Number of slots in each of the two bare loops; the time per slot is the same with more. */
const BARE = Math.min(400, MANY);
const ONE_BY_ONE = 60;
const REST_S = 60;
const RECONCILED_MS = 400_000;
/** The cluster's controllers create about five pods per second. */
const QUIET_WITHIN_MS = 600_000;
/** The cluster counts as idle after this long without an event. */
const QUIET_S = 15;

export async function measureCluster(): Promise<readonly Row[]> {
  const why = (await whyNoCluster()) ?? (await whyNoPodAccount());
  if (why !== undefined) return [{ what: 'cluster mode', figure: why, goal: 'all rows', met: undefined }];
  const ended = new AbortController();
  const bed = await openBed('slots');
  const bare = await openBed('bare');
  const account = await openPodAccount(bed.api);
  const bareAccount = await openPodAccount(bare.api);
  const service = await startClusterService(account, bed.namespace);
  try {
    await service.untilLeads();
    await simulateKubelet(bed, new Set(FEW), ended.signal);
    await reconcile(bed, FEW, FEW.length);
    for (const slot of FEW) await untilReady(bed, slot);
    const start = await measureStart(bed, account);
    const few = await measureEdits(bed, FEW);
    const paceBefore = await measureBare(bed, bare, bareAccount, 10_000);
    const togetherS = await reconcile(bed, slotNames(MANY - FEW.length, FEW.length), MANY);
    await untilQuiet(bed);
    const rest = await measureRest(service);
    const routing = await measureRouting(MANY);
    const many = await measureEdits(bed, FEW);
    const paceAfter = await measureBare(bed, bare, bareAccount, 20_000);
    const bareS = ((MANY - FEW.length) * (paceBefore + paceAfter)) / 2;
    const pace = `${togetherS.toFixed(1)} s to ${bareS.toFixed(1)} s`;
    return [
      ...rest,
      atMost(`${MANY} slots at once, compared with a bare loop (${pace})`, togetherS / bareS, { limit: 1.5, unit: '×' }),
      ...editRows(FEW.length, few),
      ...editRows(MANY, many),
      routing,
      ...start,
    ];
  } finally {
    ended.abort();
    await service.stop();
    await Promise.all([account.dispose(), bareAccount.dispose()]);
    await Promise.all([bed.dispose(), bare.dispose()]);
  }
}

function editRows(slots: number, { replicas, model }: EditDelays): readonly Row[] {
  return [
    atMost(`${slots} slots: an edit in place → Deployment, median`, replicas, { limit: 200, unit: 'ms', digits: 1 }),
    atMost(`${slots} slots: an edit of the model → Deployment, median`, model, { limit: 200, unit: 'ms', digits: 1 }),
  ];
}

/** Applies the slots and returns the seconds until all have their objects and a status of their generation. */
async function reconcile(bed: Bed, names: readonly string[], total: number): Promise<number> {
  const ended = new AbortController();
  const pending = new Set(names);
  const isObserved = ({ metadata, ...rest }: { readonly metadata: { readonly generation?: number }; readonly status?: unknown }) =>
    typeof rest.status === 'object' && rest.status !== null && Reflect.get(rest.status, 'observedGeneration') === metadata.generation;
  await bed.watch(SLOT_SPECS, ({ object }) => void (isObserved(object) && pending.delete(object.metadata.name)), ended.signal);
  const startedAt = performance.now();
  await forEachItem(names, CONNECTIONS, async (name) => void (await applySlot(bed, name)));
  const isComplete = async (): Promise<boolean> => {
    // Deployments are written last.
    if (pending.size > 0 || (await bed.count(DEPLOYMENTS)) < total) return false;
    const others = await Promise.all([SERVICES, CONFIG_MAPS].map(async (type) => await bed.count(type)));
    return others.every((count) => count >= total);
  };
  const failure = (): string => `${pending.size} slots were not reconciled in time`;
  await waitUntil(isComplete, { withinMs: RECONCILED_MS, everyMs: 200, failure });
  ended.abort();
  return (performance.now() - startedAt) / 1000;
}

/** Returns seconds per slot in a namespace without a controller, over as many connections as the controller uses. */
async function measureBare(bed: Bed, bare: Bed, account: PodAccount, first: number): Promise<number> {
  const writes = await readWrites(bed, FEW[0] ?? '');
  const { slotsS, objectsS } = await writeBare(bare, account, writes, { names: slotNames(BARE, first), atOnce: CONNECTIONS });
  const single = await writeBare(bare, account, writes, { names: slotNames(ONE_BY_ONE, first + BARE), atOnce: 1 });
  const paces = [slotsS / BARE, objectsS / BARE, (single.slotsS + single.objectsS) / ONE_BY_ONE].map((pace) => (pace * 1000).toFixed(1));
  process.stdout.write(`  bare loop, ms per slot: SlotSpec ${paces[0]}, other objects ${paces[1]}; sequentially ${paces[2]}\n`);
  return (slotsS + objectsS) / BARE;
}

/** Starts a second controller, which does not lead. */
async function measureStart(bed: Bed, account: PodAccount): Promise<readonly Row[]> {
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
async function untilQuiet(bed: Bed): Promise<void> {
  const ended = new AbortController();
  let lastAt = performance.now();
  for (const type of [DEPLOYMENTS, PODS, SLOT_SPECS]) await bed.watch(type, ({ at }) => void (lastAt = at), ended.signal);
  const isQuiet = async (): Promise<boolean> => performance.now() - lastAt > QUIET_S * 1000 && (await bed.count(PODS)) >= MANY;
  const failure = async (): Promise<string> => `The cluster has created ${await bed.count(PODS)} pods of ${MANY}, or is still busy`;
  await waitUntil(isQuiet, { withinMs: QUIET_WITHIN_MS, everyMs: 1000, failure });
  ended.abort();
}

async function measureRest(service: ClusterService): Promise<readonly Row[]> {
  const before = await service.requests();
  const cpu = await cpuSeconds(service.pid);
  await pause(REST_S * 1000);
  const share = (100 * ((await cpuSeconds(service.pid)) - cpu)) / REST_S;
  const sent = [...(await service.requests())].flatMap(([key, count]) => {
    const more = count - (before.get(key) ?? 0);
    return more > 0 ? [{ key, more }] : [];
  });
  process.stdout.write(`  requests at rest in ${REST_S} s: ${sent.map(({ key, more }) => `${more} ${key}`).join(', ')}\n`);
  const unexpected = sent.filter(({ key }) => !/leases|^watch |^list /.test(key)).reduce((sum, { more }) => sum + more, 0);
  const memoryMb = await residentMb(service.pid);
  return [
    atMost(`${MANY} slots at rest: requests besides watches, lists and leases`, unexpected, { limit: 0, unit: '', digits: 0 }),
    atMost(`${MANY} slots at rest: memory`, memoryMb, { limit: 300, unit: 'MB', digits: 0 }),
    atMost(`${MANY} slots at rest: CPU`, share, { limit: 2, unit: '% of a core' }),
  ];
}
