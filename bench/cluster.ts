/**
 * Cluster mode against a real API server, the one `KUBECONFIG` names, with the controller as a process beside it that has what a pod has: many slots at once and at rest, how soon
 * an edit is carried out, what starting costs. About ten minutes, most of which the cluster's own controllers take to make two thousand pods.
 */
import { CONFIG_MAPS, DEPLOYMENTS, PODS, SERVICES, SLOT_SPECS } from '../src/cluster/client/resource-types.ts';
import { openPodAccount, whyNoPodAccount, type PodAccount } from './cluster-account.ts';
import { readWrites, writeBare } from './cluster-bare.ts';
import { applySlot, CONNECTIONS, eachOf, openBed, slotNames, whyNoCluster, type Bed } from './cluster-bed.ts';
import { measureEdits, untilReady, type EditDelays } from './cluster-edits.ts';
import { playKubelet } from './cluster-kubelet.ts';
import { measureRouting } from './cluster-routing.ts';
import { startClusterService, type ClusterService } from './cluster-service.ts';
import { atMost, median, unmeasured, type Row } from './measure.ts';
import { cpuSeconds, pause, residentMb } from './service-process.ts';

const MANY = Number(process.env['SVC_BENCH_SLOTS'] ?? 2000);
const FEW = slotNames(5);
const STARTS = 3;
/** Slots of each of the two bare loops; their pace is the same for more. */
const BARE = Math.min(400, MANY);
const ONE_BY_ONE = 60;
const REST_S = 60;
const RECONCILED_MS = 400_000;
/** Controllers of the cluster make some five pods a second. */
const QUIET_WITHIN_MS = 600_000;
/** Nothing happens in the cluster for so long: then it is at rest. */
const QUIET_S = 15;

export async function measureCluster(): Promise<readonly Row[]> {
  const why = (await whyNoCluster()) ?? (await whyNoPodAccount());
  if (why !== undefined) return [unmeasured('cluster mode', 'all rows', why)];
  const ended = new AbortController();
  const bed = await openBed('slots');
  const bare = await openBed('bare');
  const account = await openPodAccount(bed.api);
  const bareAccount = await openPodAccount(bare.api);
  const service = await startClusterService(account, bed.namespace);
  try {
    await service.untilLeads();
    await playKubelet(bed, new Set(FEW), ended.signal);
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
    const pace = `${togetherS.toFixed(1)} s against ${bareS.toFixed(1)} s`;
    return [
      ...rest,
      atMost(`${MANY} slots at once, against a bare loop (${pace})`, togetherS / bareS, 1.5, '×', 2),
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
    atMost(`${slots} slots: an edit in place → Deployment, median`, replicas, 200, 'ms'),
    atMost(`${slots} slots: an edit of the model → Deployment, median`, model, 200, 'ms'),
  ];
}

/** Seconds until all of them have their objects and a status of their generation. */
async function reconcile(bed: Bed, names: readonly string[], total: number): Promise<number> {
  const ended = new AbortController();
  const waiting = new Set(names);
  const isThere = ({ metadata, ...rest }: { readonly metadata: { readonly generation?: number }; readonly status?: unknown }) =>
    typeof rest.status === 'object' && rest.status !== null && Reflect.get(rest.status, 'observedGeneration') === metadata.generation;
  await bed.watch(SLOT_SPECS, ({ object }) => void (isThere(object) && waiting.delete(object.metadata.name)), ended.signal);
  const begun = performance.now();
  await eachOf(names, CONNECTIONS, async (name) => void (await applySlot(bed, name)));
  const missing = async () => {
    if (waiting.size > 0) return true;
    // A Deployment is the last to be written.
    if ((await bed.count(DEPLOYMENTS)) < total) return true;
    const around = await Promise.all([SERVICES, CONFIG_MAPS].map(async (type) => await bed.count(type)));
    return around.some((count) => count < total);
  };
  while (await missing()) {
    if (performance.now() - begun > RECONCILED_MS) throw new Error(`${waiting.size} slots are not reconciled`);
    await pause(200);
  }
  ended.abort();
  return (performance.now() - begun) / 1000;
}

/** Seconds a slot, in a namespace where no controller is, over as many connections as the controller has. */
async function measureBare(bed: Bed, bare: Bed, account: PodAccount, first: number): Promise<number> {
  const writes = await readWrites(bed, FEW[0] ?? '');
  const { slotsS, objectsS } = await writeBare(bare, account, writes, slotNames(BARE, first), CONNECTIONS);
  const single = await writeBare(bare, account, writes, slotNames(ONE_BY_ONE, first + BARE), 1);
  const paces = [slotsS / BARE, objectsS / BARE, (single.slotsS + single.objectsS) / ONE_BY_ONE].map((pace) => (pace * 1000).toFixed(1));
  process.stdout.write(`  bare loop, ms a slot: its SlotSpec ${paces[0]}, all else ${paces[1]}; one request after another ${paces[2]}\n`);
  return (slotsS + objectsS) / BARE;
}

/** Of a second controller, which follows. */
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
    atMost('start in a cluster: until it listens, median', median(listening), 1, 's', 2),
    atMost('start in a cluster: until the board has five slots, median', median(board), 1.5, 's', 2),
    atMost('memory with five slots', memoryMb, 130, 'MB', 0),
  ];
}

/**
 * All pods are there, and the cluster's own controllers have nothing more to write. They make the bare loops' pods first, and meanwhile nothing happens
 * in this namespace: so quiet alone says nothing.
 */
async function untilQuiet(bed: Bed): Promise<void> {
  const ended = new AbortController();
  let lastAt = performance.now();
  for (const type of [DEPLOYMENTS, PODS, SLOT_SPECS]) await bed.watch(type, ({ at }) => void (lastAt = at), ended.signal);
  const until = performance.now() + QUIET_WITHIN_MS;
  const isQuiet = async (): Promise<boolean> => performance.now() - lastAt > QUIET_S * 1000 && (await bed.count(PODS)) >= MANY;
  while (!(await isQuiet())) {
    if (performance.now() > until)
      throw new Error(`The cluster has made ${await bed.count(PODS)} pods of ${MANY}, or does not come to rest`);
    await pause(1000);
  }
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
  const others = sent.filter(({ key }) => !/leases|^watch |^list /.test(key));
  const memoryMb = await residentMb(service.pid);
  return [
    atMost(
      `${MANY} slots at rest: requests but watches, lists, leases`,
      others.reduce((sum, { more }) => sum + more, 0),
      0,
      '',
      0,
    ),
    atMost(`${MANY} slots at rest: memory`, memoryMb, 300, 'MB', 0),
    atMost(`${MANY} slots at rest: CPU`, share, 2, '% of a core', 2),
  ];
}
