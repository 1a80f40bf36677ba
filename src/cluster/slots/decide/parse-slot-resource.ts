/** Parses a SlotSpec resource into a desired slot, or into everything that is wrong with it. Pure. */
import { z } from 'zod';
import type { KubeObject } from '../../client/ports.ts';
import type { DesiredSlot } from '../../../reconciler/ports.ts';
import { isTable } from '../../../schema/words/key-case.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import { isSameValue } from '../../../schema/words/same-value.ts';
import { chooseText } from '../../../schema/slot/paused-text.ts';
import { canRollBack } from '../../../schema/slot/scaling.ts';
import { parseSlot, type ParsedSlot, type SlotSpec, type SpecProblem } from '../../../schema/slot/slot-spec.ts';

export interface ParsedResource {
  readonly name: SlotName;
  readonly uid: string | undefined;
  readonly generation: number;
  readonly document: unknown;
  readonly problems: readonly SpecProblem[];
  /** The present text; undefined if it is not valid. */
  readonly newest: LastGood | undefined;
  /** The text in force. */
  readonly lastGood: LastGood | undefined;
  readonly slot: DesiredSlot | undefined;
}

/** The document is kept too, since a later version of the program may have other defaults. */
export interface LastGood {
  readonly generation: number;
  readonly document: Readonly<Record<string, unknown>>;
  readonly spec: SlotSpec;
}

/** Further problems are counted, since nobody reads that many. */
const MOST_PROBLEMS = 50;

/** A new status is no change of the desired state. */
export function isDesiredChange(before: KubeObject | undefined, { metadata }: KubeObject): boolean {
  const { uid, generation, deletionTimestamp } = before?.metadata ?? {};
  // The server increments the generation with each change of the spec, and only then.
  const isSameSpec = generation !== undefined && generation === metadata.generation;
  return !isSameSpec || uid !== metadata.uid || deletionTimestamp !== metadata.deletionTimestamp;
}

/**
 * Returns `before` itself if the desired state is unchanged. The last good text comes from `before`, or from the status
 * of the object, for a replica that did not see it itself.
 */
export function parseSlotResource(name: SlotName, object: KubeObject, before: ParsedResource | undefined): ParsedResource {
  const known = before?.uid === object.metadata.uid ? before : undefined;
  const text = readText(name, object, known);
  const { generation, document, problems, newest } = text;
  const isPaused = newest?.spec.rollout?.paused === true;
  const earlier = newest === undefined || isPaused ? chooseLastGood(known?.lastGood, recallLastGood(name, object)) : undefined;
  const lastGood = isPaused ? (earlier ?? { generation, ...chooseText(undefined, newest).inForce }) : (newest ?? earlier);
  if (known !== undefined && known.generation === generation && known.lastGood === lastGood) return known;
  const { uid } = object.metadata;
  const slot = lastGood && { name, uid, generation, problems, ...inForceOf(lastGood, newest) };
  return { name, uid, generation, document, problems, newest, lastGood, slot };
}

/** As a paused Deployment does, a paused slot follows edits of `replicas`: autoscalers go on. */
function inForceOf(lastGood: LastGood, newest: LastGood | undefined): Pick<DesiredSlot, 'spec' | 'paused'> {
  if (newest?.spec.rollout?.paused !== true) return { spec: lastGood.spec };
  const { replicas } = newest.spec.cluster;
  const scaled = { ...lastGood, spec: { ...lastGood.spec, cluster: { ...lastGood.spec.cluster, replicas } } };
  return { spec: scaled.spec, paused: chooseText(scaled, newest).paused };
}

function readText(name: SlotName, { metadata, spec: document }: KubeObject, known: ParsedResource | undefined) {
  const { generation = 1 } = metadata;
  if (known?.generation === generation && metadata.generation !== undefined) return known;
  if (known !== undefined && isSameValue(known.document, document)) {
    if (known.generation === generation) return known;
    return { generation, document, problems: known.problems, newest: known.newest && { ...known.newest, generation } };
  }
  const parsed = refuseCases(parseSlot(name, document, 'camelCase'));
  return parsed.ok && isTable(document)
    ? { generation, document, problems: NO_PROBLEMS, newest: { generation, document, spec: parsed.spec } }
    : { generation, document, problems: parsed.ok ? NO_PROBLEMS : limitProblems(parsed.problems), newest: undefined };
}

/** Pods of a cluster answer no cases yet. A key that has no effect would be taken for a guard. */
function refuseCases(parsed: ParsedSlot): ParsedSlot {
  if (!parsed.ok || !canRollBack(parsed.spec.rollout)) return parsed;
  const { check, cases } = parsed.spec.rollout ?? {};
  const key = check !== undefined ? 'check' : cases !== undefined ? 'cases' : 'watch';
  return { ok: false, problems: [{ path: ['rollout', key], message: 'New models are not judged in a cluster: remove this key' }] };
}

const NO_PROBLEMS: readonly SpecProblem[] = [];

const Recorded = z.object({
  observedGeneration: z.int().optional().catch(undefined),
  lastGood: z.object({ generation: z.int().min(1), spec: z.record(z.string(), z.unknown()) }),
});

/** The last good text in the status of an object, and whether the leader that wrote it had read the present text. */
interface RecordedLastGood extends LastGood {
  readonly judged: boolean;
}

/** A record is parsed by the same rules as the text of a user, and ignored unless it is from an earlier generation. */
function recallLastGood(name: SlotName, { metadata, ...object }: KubeObject): RecordedLastGood | undefined {
  const recorded = Recorded.safeParse(object['status']).data;
  const { generation: present } = metadata;
  if (recorded === undefined || present === undefined || recorded.lastGood.generation >= present) return undefined;
  const { generation, spec: document } = recorded.lastGood;
  const parsed = parseSlot(name, document, 'camelCase');
  return parsed.ok ? { generation, document, spec: parsed.spec, judged: recorded.observedGeneration === present } : undefined;
}

/** All replicas must choose the same: the leader's once it has judged the present text, until then the newest known. */
function chooseLastGood(own: LastGood | undefined, recorded: RecordedLastGood | undefined): LastGood | undefined {
  if (recorded === undefined || own?.generation === recorded.generation) return own;
  if (own !== undefined && !recorded.judged && own.generation > recorded.generation) return own;
  const { judged: _judged, ...lastGood } = recorded;
  return lastGood;
}

export interface LastGoodRecord {
  readonly generation: number;
  readonly spec: Readonly<Record<string, unknown>>;
}

/** A status with a larger record might exceed etcd's default limit (1.5 MiB), and would not be written at all. */
const LARGEST_RECORD = 262_144;

/** Undefined for a text that is too large: it cannot outlive a restart while the next one has a mistake. */
export function recordLastGood({ generation, document }: LastGood): LastGoodRecord | undefined {
  return JSON.stringify(document).length <= LARGEST_RECORD ? { generation, spec: document } : undefined;
}

function limitProblems(problems: readonly SpecProblem[]): readonly SpecProblem[] {
  const listed = problems.slice(0, MOST_PROBLEMS);
  const more = problems.length - listed.length;
  const all = more === 0 ? listed : [...listed, { path: [], message: `There are ${more} more problems` }];
  return all.map((problem) => ({ ...problem, style: 'camelCase' }));
}
