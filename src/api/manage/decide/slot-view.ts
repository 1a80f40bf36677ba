/** A slot as `GET /api/slots` shows it: the text as written, and what the board says of it. */
import type { BoardSlot, BoardView } from '../../../reconciler/board.ts';
import type { SlotName } from '../../../schema/names.ts';
import type { StoredSlot } from '../../../schema/slot-editor.ts';
import { isTable, pathToSnakeCase, toSnakeCase } from '../../../schema/key-case.ts';
import { formatProblem, type SpecProblem } from '../../../schema/spec-problem.ts';
import type { Condition, SlotStatus } from '../../../schema/slot-status.ts';

/** Undefined when there is neither a text nor a workload of that name. Pure. */
export function viewSlot(name: SlotName, stored: StoredSlot | undefined, board: BoardView) {
  const entry = board.slots.get(name);
  const refused = board.refused.get(name);
  if (stored === undefined && entry === undefined && refused === undefined) return undefined;
  return {
    name,
    spec: stored?.document === undefined ? null : toSnakeCase(stored.document),
    status: entry === undefined ? statusOfUnseen(stored, refused ?? [], board.at) : statusOf(entry),
    generation: entry?.generation ?? 0,
    resource_version: stored?.resourceVersion ?? null,
  };
}

function statusOf(entry: BoardSlot) {
  const { status } = entry;
  return {
    state: status.state,
    conditions: status.conditions.map(viewCondition),
    observed_generation: status.observedGeneration,
    provider: status.provider,
    backend: status.backend,
    model: status.model,
    wanted_model: entry.model,
    capabilities: entry.capabilities,
    endpoint: status.endpoint ?? null,
    memory_bytes: status.memoryBytes ?? null,
    restarts: status.restarts,
    replicas: status.replicas ?? null,
    since: isoTime(status.since),
    progress: viewProgress(status),
    problems: entry.problems.map(viewProblem),
  };
}

/** A text that no pass has seen yet, or that never was good. */
function statusOfUnseen(stored: StoredSlot | undefined, problems: readonly SpecProblem[], at: number) {
  const refused = problems.length > 0;
  const reason = refused ? 'SpecInvalid' : 'NotYetSeen';
  const message = refused ? problems.map((problem) => formatProblem(problem)).join('; ') : 'No pass has seen this slot yet';
  const condition = (type: Condition['type'], status: Condition['status']): Condition => ({
    type,
    status,
    reason,
    message,
    lastTransitionAt: at,
    observedGeneration: 0,
  });
  const conditions = refused
    ? [condition('Ready', 'False'), condition('Stalled', 'True'), condition('SpecValid', 'False')]
    : [condition('Ready', 'Unknown')];
  const { model } = isTable(stored?.document) ? stored.document : {};
  return {
    state: 'offline',
    conditions: conditions.map(viewCondition),
    observed_generation: 0,
    provider: null,
    backend: null,
    model: isTable(model) && typeof model['default'] === 'string' ? model['default'] : null,
    wanted_model: null,
    capabilities: [],
    endpoint: null,
    memory_bytes: null,
    restarts: 0,
    replicas: null,
    since: isoTime(at),
    progress: null,
    problems: problems.map(viewProblem),
  };
}

/** Pure. */
export function viewProgress({ progress }: SlotStatus) {
  if (progress === undefined) return null;
  return { what: progress.what, done_bytes: progress.doneBytes, total_bytes: progress.totalBytes ?? null };
}

/** Unix milliseconds as ISO 8601 in UTC; null for "not yet". Pure. */
export function isoTime(at: number): string | null {
  return at > 0 && Number.isFinite(at) ? new Date(at).toISOString() : null;
}

function viewCondition(condition: Condition) {
  return {
    type: condition.type,
    status: condition.status,
    reason: condition.reason,
    message: condition.message,
    last_transition_at: isoTime(condition.lastTransitionAt),
    observed_generation: condition.observedGeneration,
  };
}

function viewProblem(problem: SpecProblem) {
  return {
    key: pathToSnakeCase(problem.path).join('.'),
    message: problem.message,
    file: problem.file ?? null,
    line: problem.line ?? null,
    column: problem.column ?? null,
  };
}
