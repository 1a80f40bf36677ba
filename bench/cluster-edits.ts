/** The delay from an edit of a SlotSpec to its Deployment: the time between their watch events, so that the delay of the watches cancels out. */
import type { KubeObject } from '../src/cluster/client/ports.ts';
import { DEPLOYMENTS, SLOT_SPECS } from '../src/cluster/client/decide/resource-path.ts';
import { LABELS } from '../src/schema/pod/kube-fields.ts';
import { applySlot, type Bed } from './cluster-bed.ts';
import { median } from './measure.ts';
import { waitUntil } from './wait-until.ts';

export interface EditDelays {
  /** An edit that is applied in place. Median, in milliseconds. */
  readonly replicas: number;
  /** An edit that creates a second Deployment. Median, in milliseconds. */
  readonly model: number;
}

const ROUNDS = 3;
const WITHIN_MS = 30_000;
/** Longest time after a swap until the old Deployment is removed. */
const READY_WITHIN_MS = 90_000;

interface SeenObject {
  readonly at: number;
  readonly object: KubeObject;
}

/** Edits the slots, which must be ready. */
export async function measureEdits(bed: Bed, slots: readonly string[]): Promise<EditDelays> {
  const ended = new AbortController();
  const specs = new Map<string, SeenObject>();
  const deployments = new Map<string, SeenObject[]>();
  await bed.watch(
    SLOT_SPECS,
    ({ object, at }) => void specs.set(`${object.metadata.name} ${object.metadata.generation}`, firstEvent(specs, object, at)),
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
    const delay = (): number | undefined => {
      const edit = specs.get(`${slot} ${metadata.generation}`);
      const seen = deployments.get(slot)?.find(({ object }) => shows(object));
      return edit === undefined || seen === undefined ? undefined : seen.at - edit.at;
    };
    const failure = (): string => `The Deployment of slot "${slot}" was not updated: ${JSON.stringify(change)}`;
    return waitUntil(delay, { withinMs: WITHIN_MS, everyMs: 2, failure });
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

/** Waits until the slot is ready and not reconciling. */
export async function untilReady(bed: Bed, slot: string): Promise<void> {
  let status: unknown;
  const isReady = async (): Promise<boolean> => {
    const found = await bed.api.get(SLOT_SPECS, slot, new AbortController().signal);
    status = found.ok ? found.value['status'] : found;
    return found.ok && isReconciled(found.value);
  };
  const failure = (): string => `Slot "${slot}" did not become ready: ${JSON.stringify(status)}`;
  await waitUntil(isReady, { withinMs: READY_WITHIN_MS, everyMs: 100, failure });
}

function isReconciled({ metadata, ...rest }: KubeObject): boolean {
  const status = rest['status'];
  if (typeof status !== 'object' || status === null) return false;
  const conditions: unknown = Reflect.get(status, 'conditions');
  const isTrue = (type: string): boolean =>
    Array.isArray(conditions) && conditions.some((condition) => condition.type === type && condition.status === 'True');
  return Reflect.get(status, 'observedGeneration') === metadata.generation && isTrue('Ready') && !isTrue('Reconciling');
}

/** Returns the first event of a generation; later ones are changes of the status. */
function firstEvent(specs: ReadonlyMap<string, SeenObject>, object: KubeObject, at: number): SeenObject {
  return specs.get(`${object.metadata.name} ${object.metadata.generation}`) ?? { at, object };
}

function readNumber(spec: unknown, key: string): unknown {
  return typeof spec === 'object' && spec !== null ? Reflect.get(spec, key) : undefined;
}

const modelOf = (round: number): { readonly default: string } => ({ default: round % 2 === 0 ? 'demo-fox' : 'demo-owl' });
