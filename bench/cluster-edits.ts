/** How soon an edit of a SlotSpec shows in its Deployment: from the one's event to the other's, both watched here, so that the watches' own delay falls out. */
import type { KubeObject } from '../src/cluster/client/ports.ts';
import { DEPLOYMENTS, SLOT_SPECS } from '../src/cluster/client/resource-types.ts';
import { LABELS } from '../src/schema/object-labels.ts';
import { applySlot, type Bed } from './cluster-bed.ts';
import { median } from './measure.ts';
import { pause } from './service-process.ts';

export interface EditDelays {
  /** Changed in place. Milliseconds, medians. */
  readonly replicas: number;
  /** Brings a new Deployment beside the one that serves. */
  readonly model: number;
}

const ROUNDS = 3;
const WITHIN_MS = 30_000;
/** After a swap, until the old Deployment is gone. */
const SETTLED_MS = 90_000;

interface Seen {
  readonly at: number;
  readonly object: KubeObject;
}

/** The slots must be ready. */
export async function measureEdits(bed: Bed, slots: readonly string[]): Promise<EditDelays> {
  const ended = new AbortController();
  const specs = new Map<string, Seen>();
  const deployments = new Map<string, Seen[]>();
  await bed.watch(
    SLOT_SPECS,
    ({ object, at }) => void specs.set(`${object.metadata.name} ${object.metadata.generation}`, first(specs, object, at)),
    ended.signal,
  );
  await bed.watch(
    DEPLOYMENTS,
    ({ type, object, at }) => {
      const slot = object.metadata.labels?.[LABELS.slot] ?? '';
      if (type !== 'DELETED') deployments.set(slot, [...(deployments.get(slot) ?? []), { at, object }]);
    },
    ended.signal,
  );
  const delayOf = async (slot: string, change: object, shows: (deployment: KubeObject) => boolean): Promise<number> => {
    deployments.delete(slot);
    const { metadata } = await applySlot(bed, slot, { ...change });
    const until = performance.now() + WITHIN_MS;
    for (;;) {
      const edit = specs.get(`${slot} ${metadata.generation}`);
      const seen = deployments.get(slot)?.find(({ object }) => shows(object));
      if (edit !== undefined && seen !== undefined) return seen.at - edit.at;
      if (performance.now() > until) throw new Error(`The Deployment of "${slot}" did not follow: ${JSON.stringify(change)}`);
      await pause(2);
    }
  };
  const replicas: number[] = [];
  const model: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const slot of slots) {
      replicas.push(await delayOf(slot, { replicas: 2, model: modelOf(round) }, ({ spec }) => readNumber(spec, 'replicas') === 2));
      await untilReady(bed, slot);
      replicas.push(await delayOf(slot, { model: modelOf(round) }, ({ spec }) => readNumber(spec, 'replicas') === 1));
      await untilReady(bed, slot);
    }
    const before = new Map(slots.map((slot) => [slot, deployments.get(slot)?.at(-1)?.object.metadata.uid]));
    for (const slot of slots)
      model.push(await delayOf(slot, { model: modelOf(round + 1) }, ({ metadata: { uid } }) => uid !== before.get(slot)));
    for (const slot of slots) await untilReady(bed, slot);
  }
  ended.abort();
  return { replicas: median(replicas), model: median(model) };
}

/** Answers, and nothing is under way. */
export async function untilReady(bed: Bed, slot: string): Promise<void> {
  const until = performance.now() + SETTLED_MS;
  for (;;) {
    const found = await bed.api.get(SLOT_SPECS, slot, new AbortController().signal);
    if (found.ok && isSettled(found.value)) return;
    if (performance.now() > until)
      throw new Error(`"${slot}" does not become ready: ${JSON.stringify(found.ok ? found.value['status'] : found)}`);
    await pause(100);
  }
}

function isSettled({ metadata, ...rest }: KubeObject): boolean {
  const status = rest['status'];
  if (typeof status !== 'object' || status === null) return false;
  const conditions: unknown = Reflect.get(status, 'conditions');
  const isTrue = (type: string): boolean =>
    Array.isArray(conditions) && conditions.some((condition) => condition.type === type && condition.status === 'True');
  return Reflect.get(status, 'observedGeneration') === metadata.generation && isTrue('Ready') && !isTrue('Reconciling');
}

/** Of all events of one generation the first: later ones are of its status. */
function first(specs: ReadonlyMap<string, Seen>, object: KubeObject, at: number): Seen {
  return specs.get(`${object.metadata.name} ${object.metadata.generation}`) ?? { at, object };
}

function readNumber(spec: unknown, key: string): unknown {
  return typeof spec === 'object' && spec !== null ? Reflect.get(spec, key) : undefined;
}

const modelOf = (round: number): { readonly default: string } => ({ default: round % 2 === 0 ? 'demo-fox' : 'demo-owl' });
