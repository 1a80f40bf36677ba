/** Parses a SlotSpec resource into a desired slot, or into everything that is wrong with it. Pure. */
import { z } from 'zod';
import type { KubeObject } from '../../client/ports.ts';
import type { ReadChecks } from '../../../evaluation/decide/parse-cases.ts';
import { judgeText, recallRollout, settleRollout, type RolloutState, type Settlement } from '../../../evaluation/decide/rollout-state.ts';
import type { DesiredSlot } from '../../../reconciler/ports.ts';
import { defined, valueAt } from '../../../schema/pod/kube-fields.ts';
import { isTable } from '../../../schema/words/key-case.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import { isSameValue, reuse } from '../../../schema/words/same-value.ts';
import { chooseText, type AcceptedText } from '../../../schema/slot/paused-text.ts';
import { canRollBack, type RolloutSpec } from '../../../schema/slot/scaling.ts';
import { parseSlot, type ParsedSlot, type SlotSpec, type SpecProblem } from '../../../schema/slot/slot-spec.ts';

export interface ParsedResource {
  readonly name: SlotName;
  readonly uid: string | undefined;
  readonly generation: number;
  readonly document: unknown;
  readonly problems: readonly SpecProblem[];
  /** The present text; undefined if it is not valid. Its cases may have a mistake. */
  readonly newest: LastGood | undefined;
  /** The text in force. */
  readonly lastGood: LastGood | undefined;
  /** Set where new models are judged. */
  readonly rollout: RolloutState | undefined;
  readonly recorded: RecordedRollout;
  /** That of the leader that has parsed it. */
  readonly term: object | undefined;
  readonly slot: DesiredSlot | undefined;
}

/** The document is kept too, since a later version of the program may have other defaults. */
export interface LastGood {
  readonly generation: number;
  readonly document: Readonly<Record<string, unknown>>;
  readonly spec: SlotSpec;
}

/** What the status of the object says of its rollout, as it was written, and what that means. */
interface RecordedRollout {
  readonly document: unknown;
  readonly state: RolloutState | undefined;
}

/** Who judges new models: the leader by itself, and the other replicas by what it has written into the status. */
export interface Judging {
  /** Identifies the term of a leader; undefined on another replica. */
  readonly term: object | undefined;
  /** The cases of a slot; undefined if they cannot be read now, and on replicas that do not judge. */
  readonly checksOf?: ((rollout: RolloutSpec | undefined) => ReadChecks | undefined) | undefined;
}

const NOBODY_JUDGES: Judging = { term: undefined };

/** Further problems are counted, since nobody reads that many. */
const MOST_PROBLEMS = 50;

/** A new status is no change of the desired state, unless the leader has settled something of a rollout. */
export function isDesiredChange(before: KubeObject | undefined, object: KubeObject): boolean {
  const { metadata } = object;
  const { uid, generation, deletionTimestamp } = before?.metadata ?? {};
  // The server increments the generation with each change of the spec, and only then.
  const isSameSpec = generation !== undefined && generation === metadata.generation;
  if (!isSameSpec || uid !== metadata.uid || deletionTimestamp !== metadata.deletionTimestamp) return true;
  return !isSameValue(valueAt(before, 'status', 'rollout'), valueAt(object, 'status', 'rollout'));
}

/**
 * Returns `before` itself if the desired state is unchanged. The last good text comes from `before`, or from the status
 * of the object, for a replica that did not see it itself. So does the rollout, from `before` only within one term.
 */
export function parseSlotResource(
  name: SlotName,
  object: KubeObject,
  before: ParsedResource | undefined,
  judging: Judging = NOBODY_JUDGES,
): ParsedResource {
  const known = before?.uid === object.metadata.uid ? before : undefined;
  const { term, checksOf } = judging;
  const own = term !== undefined && known?.term === term ? known : undefined;
  const { generation, document, ...text } = readText(name, object, known);
  const recorded = recallRecorded(name, object, known);
  const found = chooseInForce({ ...text, generation }, { name, object, known, own, recorded, checksOf });
  const problems = reuse(known?.problems, found.problems);
  const lastGood = reuse(known?.lastGood, found.lastGood);
  const rollout = reuse(known?.rollout, found.rollout);
  const isText = known?.generation === generation && known.problems === problems && known.lastGood === lastGood;
  const isSame = isText && known.rollout === rollout;
  if (isSame && known.recorded === recorded && known.term === term) return known;
  const { uid } = object.metadata;
  const slot = isSame
    ? known.slot
    : lastGood && { name, uid, generation, problems, ...inForceOf(lastGood, text.newest), ...defined({ rollout }) };
  return { name, uid, generation, document, problems, newest: text.newest, lastGood, rollout, recorded, term, slot };
}

interface Sources {
  readonly name: SlotName;
  readonly object: KubeObject;
  /** The same object, as this replica has parsed it before. */
  readonly known: ParsedResource | undefined;
  /** The same, if it was parsed and settled in this term of this replica as the leader. */
  readonly own: ParsedResource | undefined;
  readonly recorded: RecordedRollout;
  readonly checksOf: Judging['checksOf'];
}

type Text = Pick<ParsedResource, 'generation' | 'problems' | 'newest'>;

function chooseInForce(
  { newest, generation, problems }: Text,
  sources: Sources,
): Pick<ParsedResource, 'problems' | 'lastGood' | 'rollout'> {
  const { name, object, own, recorded, checksOf } = sources;
  if (newest === undefined) return { problems, ...keepEarlier(sources) };
  const { rollout: rules } = newest.spec;
  if (rules?.paused === true) {
    const { lastGood = { ...chooseText(undefined, newest).inForce, generation }, rollout } = keepEarlier(sources);
    return { problems: NO_PROBLEMS, lastGood, rollout };
  }
  if (!canRollBack(rules)) return { problems: NO_PROBLEMS, lastGood: newest, rollout: undefined };
  const read = checksOf?.(rules);
  if (read !== undefined && 'problem' in read) return { problems: [{ ...read.problem, style: 'camelCase' }], ...keepEarlier(sources) };
  const checks = read?.checks;
  const isJudged = own?.newest === newest && own.problems.length === 0 && own.rollout?.checks?.digest === checks?.digest;
  if (isJudged && own.generation === generation) return own;
  const before = own ?? { lastGood: recallLastGood(name, object), rollout: recorded.state };
  const judged = judgeText({ inForce: before.lastGood ?? newest, rollout: before.rollout }, newest, checks);
  return { problems: NO_PROBLEMS, lastGood: textOf(judged.inForce, generation), rollout: judged.rollout };
}

/** What stays in force. A text that this replica has seen, and of which its leader has not written, may be on trial. */
function keepEarlier({ name, object, known, own, recorded, checksOf }: Sources): Pick<ParsedResource, 'lastGood' | 'rollout'> {
  if (own?.rollout !== undefined) return { lastGood: own.lastGood, rollout: own.rollout };
  const lastGood = chooseLastGood(known?.lastGood, recallEarlier(name, object));
  const state = own === undefined ? recorded.state : undefined;
  if (lastGood === undefined || state === undefined) return { lastGood, rollout: state };
  const read = checksOf?.(lastGood.spec.rollout);
  const checks = read !== undefined && 'checks' in read ? read.checks : undefined;
  const written = recallLastGood(name, object);
  if (written?.generation === lastGood.generation) return { lastGood, rollout: { ...state, checks } };
  const { inForce, rollout } = judgeText({ inForce: written, rollout: state }, lastGood, checks);
  return { lastGood: textOf(inForce, lastGood.generation), rollout };
}

/** `generation`: that of a text which carries none. */
const textOf = (text: AcceptedText, generation: number): LastGood => ({
  generation: text.generation ?? generation,
  document: text.document,
  spec: text.spec,
});

/** Returns `parsed` itself if the settlement is void. */
export function settleResource(parsed: ParsedResource, settlement: Settlement): ParsedResource {
  const { generation, lastGood, rollout, newest, slot } = parsed;
  if (lastGood === undefined || slot === undefined || settlement.generation !== generation) return parsed;
  const settled = settleRollout({ inForce: lastGood, rollout }, settlement);
  if (settled.rollout === rollout) return parsed;
  const inForce = textOf(settled.inForce, generation);
  return {
    ...parsed,
    lastGood: inForce,
    rollout: settled.rollout,
    slot: { ...slot, ...inForceOf(inForce, newest), ...defined({ rollout: settled.rollout }) },
  };
}

function recallRecorded(name: SlotName, object: KubeObject, known: ParsedResource | undefined): RecordedRollout {
  const document = valueAt(object, 'status', 'rollout');
  if (known !== undefined && isSameValue(known.recorded.document, document)) return known.recorded;
  const parse = (text: unknown) => {
    const parsed = parseSlot(name, text, 'camelCase');
    return parsed.ok && isTable(text) ? { document: text, spec: parsed.spec } : undefined;
  };
  return { document, state: recallRollout(document, parse) };
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
  const parsed = refuseLarge(parseSlot(name, document, 'camelCase'), document);
  return parsed.ok && isTable(document)
    ? { generation, document, problems: NO_PROBLEMS, newest: { generation, document, spec: parsed.spec } }
    : { generation, document, problems: parsed.ok ? NO_PROBLEMS : limitProblems(parsed.problems), newest: undefined };
}

/** Texts to return to are in the status. */
function refuseLarge(parsed: ParsedSlot, document: unknown): ParsedSlot {
  if (!parsed.ok || !canRollBack(parsed.spec.rollout) || isRecordable(document)) return parsed;
  const message = `A slot whose new models are judged has at most ${LARGEST_RECORD} characters as JSON: use "check" with a ConfigMap instead of "cases"`;
  return { ok: false, problems: [{ path: ['rollout'], message }] };
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

/** A record is parsed by the same rules as the text of a user. */
function recallLastGood(name: SlotName, { metadata, ...object }: KubeObject): RecordedLastGood | undefined {
  const recorded = Recorded.safeParse(object['status']).data;
  const { generation: present } = metadata;
  if (recorded === undefined || present === undefined || recorded.lastGood.generation > present) return undefined;
  const { generation, spec: document } = recorded.lastGood;
  const parsed = parseSlot(name, document, 'camelCase');
  return parsed.ok ? { generation, document, spec: parsed.spec, judged: recorded.observedGeneration === present } : undefined;
}

/** That of the present generation is ignored: it is no earlier text. */
function recallEarlier(name: SlotName, object: KubeObject): RecordedLastGood | undefined {
  const recorded = recallLastGood(name, object);
  return recorded?.generation === object.metadata.generation ? undefined : recorded;
}

/** All replicas must choose the same: the leader's once it has judged the present text, until then the newest known. */
function chooseLastGood(own: LastGood | undefined, recorded: RecordedLastGood | undefined): LastGood | undefined {
  // The number of pods of a text that came back is that of a newer one.
  const isSame = own?.generation === recorded?.generation && isSameValue(own?.document, recorded?.document);
  if (recorded === undefined || isSame) return own;
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
  return isRecordable(document) ? { generation, spec: document } : undefined;
}

const isRecordable = (document: unknown): boolean => JSON.stringify(document).length <= LARGEST_RECORD;

function limitProblems(problems: readonly SpecProblem[]): readonly SpecProblem[] {
  const listed = problems.slice(0, MOST_PROBLEMS);
  const more = problems.length - listed.length;
  const all = more === 0 ? listed : [...listed, { path: [], message: `There are ${more} more problems` }];
  return all.map((problem) => ({ ...problem, style: 'camelCase' }));
}
