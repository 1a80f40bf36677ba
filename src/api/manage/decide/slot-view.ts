/** A slot as `GET /api/slots` returns it: the stored document, and its status from the board. */
import { z } from 'zod';
import type { BoardSlot, BoardView } from '../../../reconciler/board.ts';
import { valueAt } from '../../../schema/pod/kube-fields.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import type { Capability } from '../../../schema/slot/provider-kinds.ts';
import type { StoredSlot } from '../../../schema/slot/slot-editor.ts';
import { isTable, pathToSnakeCase, toSnakeCase } from '../../../schema/words/key-case.ts';
import { isSameValue } from '../../../schema/words/same-value.ts';
import { parseSlot } from '../../../schema/slot/slot-spec.ts';
import { formatProblem, type SpecProblem } from '../../../schema/slot/spec-problem.ts';
import type { Condition, SlotStatus, TimelineEntry } from '../../../schema/status/slot-status.ts';
import type { Facts, Immutable } from '../../server/answer.ts';
import * as answers from '../../../schema/status/answers.ts';
import type { FitListing } from '../../ports.ts';

type Body<Schema extends z.ZodType> = Immutable<z.output<Schema>>;

type StatusFacts = Pick<SlotStatus, 'state' | 'conditions' | 'observedGeneration' | 'restarts' | 'since'> &
  Partial<Pick<SlotStatus, 'provider' | 'backend' | 'endpoint' | 'memoryBytes' | 'replicas' | 'progress' | 'rollout'>> & {
    readonly model: string | undefined;
    readonly wantedModel?: string;
    readonly capabilities: readonly Capability[];
    readonly problems: readonly SpecProblem[];
  };

/** Undefined if there is neither a document nor a workload of that name. Pure. */
export function viewSlot(name: SlotName, stored: StoredSlot | undefined, board: BoardView): Body<typeof answers.Slot> | undefined {
  const entry = board.slots.get(name);
  const refused = board.refused.get(name);
  if (stored === undefined && entry === undefined && refused === undefined) return undefined;
  const unread = isUnread(name, stored, board);
  const spec = toSnakeCase(stored?.document);
  return {
    name,
    spec: isTable(spec) ? spec : null,
    status: entry === undefined ? statusOfUnseen(stored, unread ? [] : (refused ?? []), board.at) : statusOf(entry),
    // An edit that no pass has read yet will be the next generation.
    generation: (entry?.generation ?? 0) + (unread ? 1 : 0),
    resource_version: stored?.resourceVersion ?? null,
  };
}

/** The document is newer than the last pass, so the status does not describe it yet. */
function isUnread(name: SlotName, stored: StoredSlot | undefined, board: BoardView): boolean {
  if (stored === undefined) return false;
  const entry = board.slots.get(name);
  const problems = entry?.problems ?? board.refused.get(name);
  const parsed = parseSlot(name, stored.document);
  // An invalid document leaves the last valid one in force, and its problems show that it was read.
  if (!parsed.ok) return problems === undefined || problems.length === 0;
  return (
    entry === undefined || entry.problems.length > 0 || !isSameValue(entry.paused?.spec ?? entry.rolledBack ?? entry.spec, parsed.spec)
  );
}

function statusOf(entry: BoardSlot) {
  const { status, spec, capabilities, problems } = entry;
  return renderStatus({ ...status, wantedModel: spec.model.default, capabilities, problems });
}

/** As Kubernetes writes it: below every generation. */
const NOBODY_LOOKED = -1;

/** The status of a document that no pass has seen yet, or that has never been valid. */
function statusOfUnseen(stored: StoredSlot | undefined, problems: readonly SpecProblem[], since: number) {
  const refused = problems.length > 0;
  const reason = refused ? 'SpecInvalid' : 'NotYetSeen';
  const message = refused ? problems.map((problem) => formatProblem(problem)).join('; ') : 'The slot has not been reconciled yet';
  const condition = (type: Condition['type'], status: Condition['status']): Condition => ({
    type,
    status,
    reason,
    message,
    lastTransitionAt: since,
    observedGeneration: 0,
  });
  const conditions = refused
    ? [condition('Ready', 'False'), condition('UpToDate', 'False'), condition('Stalled', 'True'), condition('SpecValid', 'False')]
    : [condition('Ready', 'Unknown'), condition('UpToDate', 'Unknown')];
  const written = valueAt(stored?.document, 'model', 'default');
  const model = typeof written === 'string' ? written : undefined;
  const observedGeneration = refused ? 0 : NOBODY_LOOKED;
  return renderStatus({ state: 'offline', conditions, observedGeneration, model, capabilities: [], restarts: 0, since, problems });
}

function renderStatus({ conditions, since, problems, progress, ...facts }: StatusFacts): Body<typeof answers.SlotStatus> {
  return answerOf(answers.SlotStatus, {
    ...facts,
    conditions: conditions.map((condition) => ({ ...condition, lastTransitionAt: isoTime(condition.lastTransitionAt) })),
    since: isoTime(since),
    progress: progress && progressFacts(progress),
    problems: problems.map(problemFacts),
  });
}

export function progressFacts(progress: NonNullable<SlotStatus['progress']>): Facts<z.output<typeof answers.Progress>> {
  const { doneBytes, totalBytes, bytesPerSecond } = progress;
  const knowsLeft = totalBytes !== undefined && bytesPerSecond !== undefined && bytesPerSecond > 0;
  return {
    ...progress,
    bytesPerSecond: bytesPerSecond && Math.round(bytesPerSecond),
    secondsLeft: knowsLeft ? Math.max(0, Math.ceil((totalBytes - doneBytes) / bytesPerSecond)) : null,
  };
}

const problemFacts = ({ path, ...problem }: SpecProblem) => ({ ...problem, key: pathToSnakeCase(path).join('.') });

export const viewProblem = (problem: SpecProblem) => answerOf(answers.Problem, problemFacts(problem));

/** Unix milliseconds as ISO 8601 in UTC; null for "not yet". Pure. */
export const isoTime = (at: number): string | null => (at > 0 && Number.isFinite(at) ? new Date(at).toISOString() : null);

export function viewTimelineEntry({ at, ...entry }: TimelineEntry): Body<typeof answers.TimelineEntry> {
  return answerOf(answers.TimelineEntry, { ...entry, at: isoTime(at) });
}

/** Memory shares as `GET /api/slots/{name}/explain` returns them, and whether a model fits. Pure. */

export function viewMemory(memory: BoardSlot['memory']): Body<typeof answers.MemoryShare> | null {
  if (memory === undefined) return null;
  const { budgetBytes, neededBytes, aheadBytes, othersBytes, pool, keptFor } = memory;
  return answerOf(answers.MemoryShare, {
    ...memory,
    placement: partsOf(memory.placement),
    onHost: memory.split?.onHost,
    short:
      budgetBytes === undefined
        ? null
        : {
            memory: pool,
            bytes: Math.round(neededBytes),
            budgetBytes: Math.round(budgetBytes),
            promisedBytes: Math.round(aheadBytes),
            othersBytes: Math.round(othersBytes),
            keptFor,
          },
    candidates: memory.candidates.map(({ incumbent, group, ...each }) => {
      return { ...each, bytes: Math.round(each.bytes), running: incumbent, because: group };
    }),
  });
}

const partsOf = (placement: FitListing['placement']) =>
  Object.entries(placement).map(([memory, bytes]) => ({ memory, bytes: Math.round(bytes) }));

export function viewFit(model: string, context: number | undefined, fit: FitListing): Body<typeof answers.FitAnswer> {
  const placement = partsOf(fit.placement);
  return answerOf(answers.FitAnswer, {
    ...fit,
    model,
    context,
    neededBytes: placement.reduce((sum, { bytes }) => sum + bytes, 0),
    placement,
    roomBytes: typeof fit.roomBytes === 'number' ? Math.max(0, Math.round(fit.roomBytes)) : null,
    quantisations: fit.quantisations.map((each) => ({
      ...each,
      sizeBytes: Math.round(each.sizeBytes),
      neededBytes: Math.round(each.neededBytes),
    })),
  });
}

/** Returns facts with keys in camelCase as an answer with the keys of its schema, null for undefined. Drops others. */
export function answerOf<Schema extends z.ZodObject>(schema: Schema, facts: Facts<z.output<Schema>>): Immutable<z.output<Schema>>;
export function answerOf({ shape }: z.ZodObject, facts: object): object {
  const known = new Map<string, unknown>(Object.entries(facts));
  const nameOf = (key: string): string => key.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return Object.fromEntries(Object.entries(shape).map(([key, part]) => [key, partOf(part, known.get(nameOf(key)))]));
}

function partOf(schema: unknown, fact: unknown): unknown {
  if (schema instanceof z.ZodNullable) return partOf(schema.unwrap(), fact);
  if (schema instanceof z.ZodArray && Array.isArray(fact)) return fact.map((each) => partOf(schema.element, each));
  return schema instanceof z.ZodObject && isTable(fact) ? answerOf(schema, fact) : (fact ?? null);
}
