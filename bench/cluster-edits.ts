/** The delay from an edit of a SlotSpec to its Deployment: the time between their watch events, so that the delay of the watches cancels out. */
import type { KubeObject } from '../src/cluster/client/ports.ts';
import { DEPLOYMENTS, SLOT_SPECS } from '../src/cluster/client/decide/resource-path.ts';
import { LABELS } from '../src/schema/pod/kube-fields.ts';
import { applySlot, type Bed } from './cluster-bed.ts';
import { waitUntil } from './wait-until.ts';

export interface EditDelays {
  /** Edits that are applied in place, in milliseconds. */
  readonly inPlace: readonly number[];
  /** Edits that create a second Deployment, in milliseconds. */
  readonly model: readonly number[];
  /** How long the API server took for each edit, in milliseconds. */
  readonly requests: readonly number[];
}

const ROUNDS = 3;
/** Behind a burst, an edit may wait for all of it. */
const WITHIN_MS = 600_000;
/** Longest time after a swap until the old Deployment is removed. */
const READY_WITHIN_MS = 90_000;

interface SeenObject {
  readonly at: number;
  readonly object: KubeObject;
}

/** Makes edits and returns their delays in milliseconds. */
export async function watchEdits(bed: Bed) {
  const ended = new AbortController();
  const specs = new Map<string, SeenObject>();
  const deployments = new Map<string, SeenObject[]>();
  const uids = new Set<string | undefined>();
  const requests: number[] = [];
  await bed.watch(
    SLOT_SPECS,
    ({ object, at }) => void specs.set(`${object.metadata.name} ${object.metadata.generation}`, firstEvent(specs, object, at)),
    ended.signal,
  );
  await bed.watch(
    DEPLOYMENTS,
    ({ type, object, at }) => {
      const slot = object.metadata.labels?.[LABELS.slot] ?? '';
      uids.add(object.metadata.uid);
      if (type !== 'DELETED') deployments.set(slot, [...(deployments.get(slot) ?? []), { at, object }]);
    },
    ended.signal,
  );
  const delayOf = async (slot: string, change: object, shows: (deployment: KubeObject) => boolean): Promise<number> => {
    deployments.delete(slot);
    const sentAt = performance.now();
    const { metadata } = await applySlot(bed, slot, { ...change });
    requests.push(performance.now() - sentAt);
    const delay = (): number | undefined => {
      const edit = specs.get(`${slot} ${metadata.generation}`);
      const seen = deployments.get(slot)?.find(({ object }) => shows(object));
      return edit === undefined || seen === undefined ? undefined : seen.at - edit.at;
    };
    const failure = (): string => `The Deployment of slot "${slot}" was not updated: ${JSON.stringify(change)}`;
    return waitUntil(delay, { withinMs: WITHIN_MS, everyMs: 2, failure });
  };
  return {
    scale: async (slot: string, replicas: number, model = modelOf(0)): Promise<number> =>
      await delayOf(slot, replicas === 1 ? { model } : { replicas, model }, ({ spec }) => readNumber(spec, 'replicas') === replicas),
    /** Swaps the model of a slot that was scaled before. */
    async swap(slot: string, model: ReturnType<typeof modelOf>): Promise<number> {
      const before = new Set(uids);
      return await delayOf(slot, { model }, ({ metadata: { uid } }) => !before.has(uid));
    },
    /** How long the API server took for each edit, in milliseconds. */
    requests,
    stop: (): void => ended.abort(),
  };
}

/** Edits the slots, which must be ready and have the first model. */
export async function measureEdits(bed: Bed, slots: readonly string[]): Promise<EditDelays> {
  const edits = await watchEdits(bed);
  const inPlace: number[] = [];
  const model: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const slot of slots) {
      for (const replicas of [2, 1]) {
        inPlace.push(await edits.scale(slot, replicas, modelOf(round)));
        await untilReady(bed, slot);
      }
    }
    for (const slot of slots) model.push(await edits.swap(slot, modelOf(round + 1)));
    for (const slot of slots) await untilReady(bed, slot);
  }
  edits.stop();
  return { inPlace, model, requests: edits.requests };
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
