/** Many SlotSpecs created at once, while somebody edits a few of the slots that were there before, and while a gateway is replaced by another one. */
import { setTimeout as pause } from 'node:timers/promises';
import { CONFIG_MAPS, DEPLOYMENTS, SERVICES, SLOT_SPECS } from '../src/cluster/client/decide/resource-path.ts';
import { LABELS } from '../src/schema/pod/kube-fields.ts';
import { applySlot, CONNECTIONS, forEachItem, type Bed } from './cluster-bed.ts';
import { watchEdits } from './cluster-edits.ts';
import { waitUntil } from './wait-until.ts';

export interface Burst {
  /** From the first SlotSpec until the last Deployment. */
  readonly deployedS: number;
  /** Until all slots have a status of their generation, too. */
  readonly reportedS: number;
  /** From the event of each SlotSpec to the one of its Deployment, in milliseconds. */
  readonly createdMs: readonly number[];
  /** The same for edits in place of other slots, in milliseconds. */
  readonly editedMs: readonly number[];
  /** How long the API server took for each of these edits, in milliseconds. */
  readonly requestMs: readonly number[];
}

interface BurstOptions {
  readonly names: readonly string[];
  /** Number of slots after the burst. */
  readonly total: number;
  /** Slots that are there before and are edited in turns. */
  readonly edited: readonly string[];
  /** Called once, when a third of the Deployments exist. */
  readonly inBetween: () => Promise<void>;
}

const RECONCILED_MS = 600_000;
const EDIT_EVERY_MS = 300;

export async function createTogether(bed: Bed, { names, total, edited, inBetween }: BurstOptions): Promise<Burst> {
  const ended = new AbortController();
  const createdAt = new Map<string, number>();
  const deployedAt = new Map<string, number>();
  const pending = new Set(names);
  await bed.watch(
    SLOT_SPECS,
    ({ object: { metadata, ...rest }, at }) => {
      if (!createdAt.has(metadata.name)) createdAt.set(metadata.name, at);
      if (readGeneration(rest['status']) === metadata.generation) pending.delete(metadata.name);
    },
    ended.signal,
  );
  const onDeployment = (slot: string, at: number): void => void (deployedAt.has(slot) || deployedAt.set(slot, at));
  await bed.watch(DEPLOYMENTS, ({ object, at }) => onDeployment(object.metadata.labels?.[LABELS.slot] ?? '', at), ended.signal);
  const startedAt = performance.now();
  const deployed = (): readonly number[] => names.flatMap((name) => deployedAt.get(name) ?? []);
  const editing = editInTurns(bed, edited, () => pending.size === 0);
  const replacing = replaceInBetween(() => deployed().length > names.length / 3, inBetween);
  await forEachItem(names, CONNECTIONS, async (name) => void (await applySlot(bed, name)));
  const isComplete = async (): Promise<boolean> => {
    if (pending.size > 0) return false;
    const counts = await Promise.all([DEPLOYMENTS, SERVICES, CONFIG_MAPS].map(async (type) => await bed.count(type)));
    return counts.every((count) => count >= total);
  };
  const failure = (): string => `${pending.size} slots were not reconciled in time, and ${deployed().length} have a Deployment`;
  await waitUntil(isComplete, { withinMs: RECONCILED_MS, everyMs: 200, failure });
  const reportedS = (performance.now() - startedAt) / 1000;
  await replacing;
  const edits = await editing;
  ended.abort();
  const createdMs = names.map((name) => (deployedAt.get(name) ?? Number.NaN) - (createdAt.get(name) ?? Number.NaN));
  return { deployedS: (Math.max(...deployed()) - startedAt) / 1000, reportedS, createdMs, ...edits };
}

async function replaceInBetween(isTime: () => boolean, replace: () => Promise<void>): Promise<void> {
  await waitUntil(isTime, { withinMs: RECONCILED_MS, everyMs: 50, failure: () => 'No Deployments were created' });
  await replace();
}

/** Scales each slot to two and back. */
async function editInTurns(bed: Bed, slots: readonly string[], isOver: () => boolean): Promise<Pick<Burst, 'editedMs' | 'requestMs'>> {
  const edits = await watchEdits(bed);
  const delays: Promise<number>[] = [];
  for (let turn = 0; !isOver() || turn % (2 * slots.length) > 0; turn += 1) {
    const slot = slots[turn % slots.length] ?? '';
    delays.push(edits.scale(slot, Math.floor(turn / slots.length) % 2 === 0 ? 2 : 1));
    // An edit that waits for minutes is one delay; later ones of the same slot would wait for the same reason.
    if (turn % slots.length === slots.length - 1) await Promise.all(delays);
    await pause(EDIT_EVERY_MS);
  }
  const editedMs = await Promise.all(delays);
  edits.stop();
  return { editedMs, requestMs: edits.requests };
}

function readGeneration(status: unknown): unknown {
  return typeof status === 'object' && status !== null ? Reflect.get(status, 'observedGeneration') : undefined;
}
