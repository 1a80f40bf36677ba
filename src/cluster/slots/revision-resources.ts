/**
 * The revisions of each slot as ControllerRevisions, which its SlotSpec owns and which are deleted with it. The leader
 * writes what is in force and what became of it; the replica through which a slot was edited adds who did it. At best
 * effort: what fails is logged once, and tried again with a later change.
 */
import { versionOf } from './decide/edit-resource.ts';
import type { LastGoodRecord } from './decide/parse-slot-resource.ts';
import {
  annotationsOf,
  findOtherManager,
  parseRevision,
  revisionManifest,
  revisionName,
  type RevisionFacts,
} from './decide/revision-record.ts';
import { createWriteQueue } from './write-queue.ts';
import type { KubeApi, KubeObject, Leadership, OwnerReference, Reflector } from '../client/ports.ts';
import { CONTROLLER_REVISIONS, SLOT_SPECS } from '../client/decide/resource-path.ts';
import type { SourceLog } from '../../platform/log.ts';
import type { Clock, Report, StatusSink } from '../../reconciler/ports.ts';
import { LABELS, valueAt } from '../../schema/pod/kube-fields.ts';
import { betterOutcome, findSurplus, outcomeOf, settleOutcomes } from '../../schema/slot/decide/revisions.ts';
import type { Revision, RevisionOutcome, RevisionStore } from '../../schema/slot/revision-store.ts';
import { isTable } from '../../schema/words/key-case.ts';
import { isSameExcept } from '../../schema/words/same-value.ts';
import type { Failure } from '../../schema/words/failure.ts';
import type { SlotName } from '../../schema/words/names.ts';

export interface RevisionResourcesOptions {
  readonly api: Pick<KubeApi, 'get' | 'list' | 'create' | 'mergePatch' | 'remove'>;
  readonly slots: Pick<Reflector, 'items'>;
  readonly ownerOf: (slot: SlotName) => OwnerReference | undefined;
  /** The text in force of the object with this uid, or one that was rolled back. */
  readonly revisionOf: (slot: SlotName, uid: string | undefined) => LastGoodRecord | undefined;
  readonly leadership: Pick<Leadership, 'leads'>;
  /** Revisions of a slot that are kept. */
  readonly most: number;
  readonly clock: Clock;
  readonly log: SourceLog;
}

/** A new leader writes all of them once: about fifty in a second. */
const GAP_MS = 20;
const RETRY_MS = 5000;
const MOST_ATTEMPTS = 5;
/** A healthy API server answers within milliseconds. */
const ANSWER_WITHIN_MS = 20_000;

/** What is not written yet of one revision. */
interface Pending {
  readonly slot: SlotName;
  readonly owner: OwnerReference;
  readonly text: LastGoodRecord;
  readonly facts: RevisionFacts;
  readonly attempts: number;
}

interface Newest extends Omit<Pending, 'facts' | 'attempts'> {
  readonly outcome: RevisionOutcome;
}

export function createRevisionResources(options: RevisionResourcesOptions) {
  const { api, slots, ownerOf, revisionOf, leadership, most, clock, log } = options;
  const newest = new Map<SlotName, Newest>();
  const pending = new Map<string, Pending>();
  let failing = false;

  const queue = createWriteQueue<string>({
    clock,
    concurrency: 1,
    write(name) {
      const found = pending.get(name);
      if (found === undefined) return undefined;
      pending.delete(name);
      queue.pauseUntil(clock.now() + GAP_MS);
      return write(name, found);
    },
  });

  function keep({ slot, owner, text }: Omit<Pending, 'facts' | 'attempts'>, facts: RevisionFacts): void {
    const name = revisionName(slot, owner.uid, text.generation);
    pending.set(name, { slot, owner, text, facts: { ...pending.get(name)?.facts, ...facts }, attempts: 0 });
    queue.enqueue(name);
  }

  async function write(name: string, found: Pending): Promise<number | undefined> {
    const { slot, owner, text, facts } = found;
    const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
    const created = await api.create(CONTROLLER_REVISIONS, revisionManifest(slot, owner, text, facts), signal);
    const written =
      created.ok || created.failure.reason !== 'AlreadyExists'
        ? created
        : await api.mergePatch(CONTROLLER_REVISIONS, name, { metadata: { annotations: annotationsOf(facts) } }, signal);
    if (!written.ok) return onFailure(name, found, written.failure);
    failing = false;
    // Without more generations, there are not more revisions.
    if (created.ok && text.generation > most) await prune(slot, owner.uid, signal);
    return undefined;
  }

  function onFailure(name: string, found: Pending, { kind, message }: Failure): number | undefined {
    if (!failing) log.warn({ slot: found.slot, error: message }, `Writing the history of slot "${found.slot}" failed`);
    failing = true;
    if (kind === 'stalled' || found.attempts + 1 >= MOST_ATTEMPTS) return undefined;
    const { facts } = pending.get(name) ?? {};
    pending.set(name, { ...found, facts: { ...found.facts, ...facts }, attempts: found.attempts + 1 });
    return clock.now() + RETRY_MS;
  }

  async function read(slot: SlotName, signal: AbortSignal): Promise<readonly KubeObject[]> {
    const listed = await api.list(CONTROLLER_REVISIONS, { labelSelector: `${LABELS.slot}=${slot}` }, signal);
    if (listed.ok) return listed.value.items;
    log.warn({ slot, error: listed.failure.message }, `The history of slot "${slot}" cannot be read`);
    return [];
  }

  async function prune(slot: SlotName, uid: string, signal: AbortSignal): Promise<void> {
    const numbers = (await read(slot, signal)).flatMap((object) => parseRevision(object, uid)?.number ?? []);
    for (const number of findSurplus(numbers, most)) await api.remove(CONTROLLER_REVISIONS, revisionName(slot, uid, number), {}, signal);
  }

  /** A paused text is not in force, and what is in force has a revision already. */
  const isPaused = (spec: unknown): boolean => valueAt(spec, 'rollout', 'paused') === true;

  return {
    write({ statuses }: Pick<Report, 'statuses'>): void {
      if (!leadership.leads()) return newest.clear();
      for (const status of statuses) {
        const slot = status.name;
        const owner = ownerOf(slot);
        const present = revisionOf(slot, owner?.uid);
        const before = newest.get(slot);
        if (owner === undefined || present === undefined) newest.delete(slot);
        if (owner === undefined || present === undefined || isPaused(present.spec)) continue;
        // An autoscaler makes a generation with each edit, and no revision.
        const isSame = before?.owner.uid === owner.uid && isSameExcept(before.text.spec, present.spec, 'replicas');
        const text = isSame ? before.text : present;
        const outcome = betterOutcome(isSame ? before.outcome : 'pending', outcomeOf(status, text.generation));
        if (isSame && outcome === before.outcome) continue;
        newest.set(slot, { slot, owner, text, outcome });
        keep({ slot, owner, text }, outcome === 'pending' ? {} : { outcome });
      }
    },
    attribute(slot, resourceVersion, author): void {
      const object = slots.items().get(slot);
      const owner = ownerOf(slot);
      const spec = object?.['spec'];
      if (object === undefined || owner === undefined || versionOf(object) !== resourceVersion) return;
      const { generation } = object.metadata;
      if (generation !== undefined && isTable(spec) && !isPaused(spec)) keep({ slot, owner, text: { generation, spec } }, { author });
    },
    async list(slot) {
      const { uid } = ownerOf(slot) ?? {};
      if (uid === undefined) return [];
      const objects = await read(slot, AbortSignal.timeout(ANSWER_WITHIN_MS));
      const revisions = objects.flatMap((object): readonly Revision[] => {
        const revision = parseRevision(object, uid);
        return revision === undefined ? [] : [revision];
      });
      return settleOutcomes(revisions).slice(-most);
    },
    async managerOf(slot) {
      const found = await api.get(SLOT_SPECS, slot, AbortSignal.timeout(ANSWER_WITHIN_MS));
      return found.ok ? findOtherManager(found.value) : undefined;
    },
  } satisfies RevisionStore & StatusSink;
}
