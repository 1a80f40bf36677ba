/** Cluster mode against a real API server, the one `KUBECONFIG` names: many slots at once and at rest, and how soon an edit is carried out. */
import { CONFIG_MAPS, DEPLOYMENTS, SERVICES, SLOT_SPECS } from '../src/kube/resource-types.ts';
import { readWrites, writeBare } from './cluster-bare.ts';
import { applySlot, CONNECTIONS, eachOf, openBed, slotNames, whyNoCluster, type Bed } from './cluster-bed.ts';
import { startClusterService, type ClusterService } from './cluster-service.ts';
import { atMost, median, unmeasured, type Row } from './measure.ts';
import { cpuSeconds, pause, residentMb } from './service-process.ts';

const MANY = 2000;
const FEW = 5;
const EDITS = 15;
const REST_S = 60;
const RECONCILED_MS = 400_000;
const EDITED_MS = 10_000;

export async function measureCluster(): Promise<readonly Row[]> {
  const why = await whyNoCluster();
  if (why !== undefined) return [unmeasured('cluster mode', 'all rows', why)];
  const bed = await openBed('slots');
  const service = await startClusterService(bed.namespace);
  try {
    await reconcile(bed, slotNames(FEW), FEW);
    const few = await measureEdits(bed);
    const bareS = await measureBare(bed);
    const togetherS = await reconcile(bed, slotNames(MANY - FEW, FEW), MANY);
    const rest = await measureRest(service);
    const many = await measureEdits(bed);
    return [
      atMost(
        `${MANY} slots at once, against a bare loop (${togetherS.toFixed(1)} s, ${bareS.toFixed(1)} s)`,
        togetherS / bareS,
        1.5,
        '×',
        2,
      ),
      atMost(`an edit → Deployment, ${FEW} slots, median of ${EDITS}`, few, 200, 'ms'),
      atMost(`an edit → Deployment, ${MANY} slots, median of ${EDITS}`, many, 200, 'ms'),
      ...rest,
    ];
  } finally {
    await service.stop();
    await bed.dispose();
  }
}

/** Seconds until all of them have their objects and a status of their generation. */
async function reconcile(bed: Bed, names: readonly string[], total: number): Promise<number> {
  const ended = new AbortController();
  const waiting = new Set(names);
  await bed.watch(
    SLOT_SPECS,
    ({ object: { metadata, ...rest } }) => {
      const status: unknown = rest['status'];
      const seen = typeof status === 'object' && status !== null && 'observedGeneration' in status ? status.observedGeneration : undefined;
      if (seen === metadata.generation) waiting.delete(metadata.name);
    },
    ended.signal,
  );
  const begun = performance.now();
  await eachOf(names, CONNECTIONS, async (name) => void (await applySlot(bed, name)));
  const counts = async () => await Promise.all([DEPLOYMENTS, SERVICES, CONFIG_MAPS].map(async (type) => await bed.count(type)));
  // Clusters put ConfigMaps of their own into each namespace.
  while (waiting.size > 0 || (await counts()).some((count) => count < total)) {
    if (performance.now() - begun > RECONCILED_MS) throw new Error(`${waiting.size} slots are not reconciled`);
    await pause(100);
  }
  ended.abort();
  return (performance.now() - begun) / 1000;
}

/** In a namespace where no controller is. */
async function measureBare(bed: Bed): Promise<number> {
  const writes = await readWrites(bed, slotNames(1)[0] ?? '');
  const bare = await openBed('bare');
  try {
    const { slotsS, objectsS } = await writeBare(bare, writes, slotNames(MANY, 10_000), CONNECTIONS);
    return slotsS + objectsS;
  } finally {
    await bare.dispose();
  }
}

/** From the event of a SlotSpec to that of its Deployment, in milliseconds: replicas change in place, a model brings a new Deployment. */
async function measureEdits(bed: Bed): Promise<number> {
  const ended = new AbortController();
  const name = slotNames(1)[0] ?? '';
  const edits: number[] = [];
  const deployments: number[] = [];
  await bed.watch(SLOT_SPECS, ({ object, at }) => void (object.metadata.name === name && edits.push(at)), ended.signal);
  await bed.watch(
    DEPLOYMENTS,
    ({ object, at }) => void (object.metadata.name.startsWith(`svc-slot-${name}`) && deployments.push(at)),
    ended.signal,
  );
  const delays: number[] = [];
  for (let edit = 0; edit < EDITS; edit += 1) {
    await pause(1000);
    edits.length = 0;
    deployments.length = 0;
    await applySlot(
      bed,
      name,
      edit % 2 === 0 ? { replicas: 2 + (edit % 3) } : { replicas: 1, model: { default: `demo-${edit % 4 === 1 ? 'owl' : 'fox'}` } },
    );
    const limit = performance.now() + EDITED_MS;
    while (deployments.length === 0 && performance.now() < limit) await pause(1);
    delays.push((deployments[0] ?? Number.POSITIVE_INFINITY) - (edits[0] ?? 0));
  }
  ended.abort();
  return median(delays);
}

async function measureRest(service: ClusterService): Promise<readonly Row[]> {
  await pause(20_000);
  const before = await service.requests();
  const cpu = await cpuSeconds(service.pid);
  await pause(REST_S * 1000);
  const share = (100 * ((await cpuSeconds(service.pid)) - cpu)) / REST_S;
  const sent = [...(await service.requests())].flatMap(([key, count]) =>
    count > (before.get(key) ?? 0) ? [`${key} ${count - (before.get(key) ?? 0)}`] : [],
  );
  const other = sent.filter((line) => !/leases|^watch /.test(line));
  return [
    atMost(`${MANY} slots at rest: requests but watches and leases in ${REST_S} s (${sent.join(', ')})`, other.length, 0, '', 0),
    atMost(`${MANY} slots at rest: CPU`, share, 2, '%'),
    atMost(`${MANY} slots at rest: memory`, await residentMb(service.pid), 300, 'MB', 0),
  ];
}
