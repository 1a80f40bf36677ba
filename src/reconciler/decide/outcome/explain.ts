/** A decision as text, for `svcctl plan` and `explain`, the timeline and tests. Times are relative to `now`. Pure. */
import type { Finding } from '../../../schema/words/failure.ts';
import type { ConditionType } from '../../../schema/status/slot-status.ts';
import type { FailedRollout } from '../../../schema/slot/evaluation-case.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import { formatSize } from '../../../schema/words/quantities.ts';
import { adviceFor, isAtRestReason, type Reason } from '../../../schema/status/reasons.ts';
import { changesWorld, type Action, type ActionArgs } from '../facts/actions.ts';
import type { Reader } from '../../board.ts';
import type { Decision, Plan } from '../facts/facts.ts';
import { HOST, type MemoryGroup, type MemoryCandidate, type MemoryVerdict } from '../facts/memory-pools.ts';
import { describeFallback } from '../../../schema/slot/fallback.ts';
import { quoted } from '../../../schema/slot/spec-problem.ts';

const EVERYTHING: Reader = { readsLogs: true, nameOf: (caller) => caller };

/** Why one slot is as it is, one reason a line, the most important first. */
export function explainSlot(decision: Decision, actions: readonly Action[], now: number, reader = EVERYTHING): string {
  const lines = [
    `Slot "${decision.name}" is ${stateWord(decision)}`,
    ...decision.findings.map((finding) => `  because: ${findingText(finding)}`),
    ...actions.filter(changesWorld).map((action) => `  next: ${actionText(action)}`),
    ...causeLines(decision, reader),
    ...adviceLines(decision),
    ...conflictLines(decision),
    ...(decision.fallback === undefined ? [] : [`  fallback: ${describeFallback(decision.fallback)}`]),
    ...(decision.backendChoice === undefined ? [] : [`  backend: ${decision.backendChoice}`]),
    ...memoryLines(decision.memory),
    ...(decision.notes ?? []).map((note) => `  ${note}`),
    ...(decision.prompts === undefined ? [] : promptLines(decision.prompts)),
    ...(decision.readAhead === undefined ? [] : [readAheadLine(decision.readAhead)]),
    ...attemptLines(decision, now),
    ...(reader.readsLogs ? logLines(decision) : []),
    ...(decision.progress === undefined ? [] : [`  pulled ${progressText(decision.progress)}`]),
    ...(decision.draining.length === 0 ? [] : [`  waiting for the requests of ${quoted(decision.draining)} to end`]),
    ...(decision.serving === undefined ? [] : [`  served by "${decision.serving}"`]),
  ];
  return lines.join('\n');
}

/** The cases that the model of the last edit has missed. */
export const missLines = (
  { misses }: { readonly misses: readonly Readonly<FailedRollout['misses'][number]>[] } = { misses: [] },
): readonly string[] =>
  misses.flatMap(({ case: number, required, question, expectation, answer }) => [
    `  case ${number}${required ? ' (required)' : ''}: ${JSON.stringify(question)}`,
    `    expected: ${expectation}`,
    `    answered: ${JSON.stringify(answer)}`,
  ]);

/** Distinguishes a slot that is off on purpose from one that should run. */
function stateWord({ state, findings: [first] }: Decision): string {
  return state === 'offline' && first !== undefined && isAtRestReason(first.reason) ? 'off' : state;
}

/** What a plan does, slot by slot, without slots that need nothing. */
export function explain(plan: Plan, now: number): string {
  const bySlot = Map.groupBy(plan.actions.filter(changesWorld), ({ slot }) => slot);
  const slots = [...plan.decisions.values()]
    .filter((each) => bySlot.has(each.name) || (stateWord(each) === 'off' ? findFailing(each) !== undefined : each.findings.length > 0))
    .map((decision) => explainSlot(decision, bySlot.get(decision.name) ?? [], now));
  const orphans = [...bySlot]
    .filter(([name]) => !plan.decisions.has(name))
    .map(([name, actions]) => [`Slot "${name}" was removed`, ...actions.map((action) => `  next: ${actionText(action)}`)].join('\n'));
  const all = [...slots, ...orphans];
  return all.length === 0 ? 'No action required' : all.join('\n');
}

export interface Change {
  readonly slot: SlotName;
  readonly action: string;
  readonly because: Reason;
  readonly message: string;
}

/** What a plan changes, so without probes. */
export function listChanges(plan: Plan): readonly Change[] {
  return plan.actions.filter(changesWorld).map((action) => ({
    slot: action.slot,
    action: action.name,
    because: action.because.reason,
    message: actionText(action),
  }));
}

/** A slot that nothing but an action of a user can bring into the state of its spec. */
export type FailingSlot = Pick<Change, 'slot' | 'message'> & { readonly reason: Reason };

/** Undefined where the slot answers as specified, rests on purpose, or gets there by itself. */
export function findFailing({ name, conditions }: Pick<Decision, 'name' | 'conditions'>): FailingSlot | undefined {
  const is = (type: ConditionType, status: string): boolean => conditions.some((each) => each.type === type && each.status === status);
  const upToDate = conditions.find(({ type, status }) => type === 'UpToDate' && status === 'False');
  if (upToDate === undefined || !(is('Stalled', 'True') || is('Reconciling', 'False'))) return undefined;
  return { slot: name, reason: upToDate.reason, message: upToDate.message };
}

/** What an action does, and why: `start "svc-slot-primary" … on port 18080: The slot is wanted …`. */
export const actionText = (action: Action): string => `${verbPhrase(action)}: ${action.because.message}`;

/** Timeline text when an action begins: `Starting "svc-slot-primary" … on port 18080: The slot is wanted …`. */
export const beginText = (action: Action): string => `${capitalized(verbPhrase(action, 'ing'))}: ${action.because.message}`;

/** Timeline text when an action has succeeded: `Started "svc-slot-primary" … on port 18080`. */
export const doneText = (action: Action): string => capitalized(verbPhrase(action, 'ed'));

type Tense = 'ing' | 'ed' | undefined;

/** Stems to which an ending is added, where they are not the verb itself. */
const STEMS: Readonly<Record<string, string>> = { cancel: 'cancell', probe: 'prob', stop: 'stopp', update: 'updat' };

const inTense = (verb: string, tense: Tense): string => (tense === undefined ? verb : `${STEMS[verb] ?? verb}${tense}`);

function verbPhrase(action: Action, tense?: Tense): string {
  switch (action.name) {
    case 'pullImage':
      return `${inTense('pull', tense)} image "${action.args.image.reference}"`;
    case 'pullModel':
      return `${inTense('pull', tense)} model "${action.args.model}"`;
    case 'cancelPull':
      return `${inTense('cancel', tense)} "${action.args.key}"`;
    case 'apply':
      return applyText(action.args, tense);
    case 'sleep':
      return `${tense === 'ing' ? 'putting' : 'put'} "${action.args.workload}" to sleep`;
    case 'wake':
      return `${tense === undefined ? 'wake' : tense === 'ing' ? 'waking' : 'woke'} "${action.args.workload}"`;
    case 'evaluate':
      return `${tense === undefined ? 'ask' : tense === 'ing' ? 'asking' : 'asked'} "${action.args.workload}" for the answers to the cases of "rollout"`;
    case 'settle':
      return settlementText(action.args.settlement, tense);
    case 'countRequests':
      return `${inTense('count', tense)} the requests of "${action.args.workload}"`;
    case 'probe':
      return `${inTense('probe', tense)} "${action.args.workload}"`;
    case 'noteCrash':
      return `${inTense('count', tense)} the crash of "${action.args.workload}"`;
    case 'stop':
      return `${inTense('stop', tense)} "${action.args.workload}"${action.args.abort ? ', ending its requests' : ''}`;
    default:
      return action satisfies never;
  }
}

function settlementText(settlement: ActionArgs['settle']['settlement'], tense: Tense): string {
  if (settlement.kind === 'verdict') return `${inTense('roll', tense)} the last edit back`;
  if (settlement.kind === 'proven') return `${inTense('end', tense)} the watch over the new model`;
  return `${inTense('accept', tense)} revision "${settlement.revision}"`;
}

function applyText({ workload, origin, updatesInPlace }: ActionArgs['apply'], tense: Tense): string {
  if (updatesInPlace !== undefined) return `${inTense(updatesInPlace.altered ? 'repair' : 'update', tense)} "${workload.name}" in place`;
  const { cluster, port } = workload;
  const where =
    cluster === undefined ? `on port ${port.host}` : `in ${cluster.replicas} ${cluster.replicas === 1 ? 'replica' : 'replicas'}`;
  return `${inTense('start', tense)} "${workload.name}" with model "${origin.model.id}" ${where}`;
}

const capitalized = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

const findingText = ({ reason, message }: Finding): string => `${message} [${reason}]`;

function causeLines({ loadsFor, gaveWayTo }: Decision, { nameOf }: Reader): readonly string[] {
  const askedBy = (caller: string | undefined, text: string): string => {
    const name = caller === undefined ? undefined : nameOf(caller);
    return name === undefined ? '' : `${text}asked for by caller "${name}"`;
  };
  const load = askedBy(loadsFor, '  ');
  return [
    ...(load === '' ? [] : [load]),
    ...(gaveWayTo === undefined ? [] : [`  gave way to slot "${gaveWayTo.slot}"${askedBy(gaveWayTo.caller, ', ')}`]),
  ];
}

/** Only where somebody must act. */
function adviceLines({ name, conditions }: Decision): readonly string[] {
  const stalled = conditions.find(({ type, status }) => type === 'Stalled' && status === 'True');
  if (stalled === undefined) return [];
  return [`  to do: ${adviceFor(stalled.reason).replaceAll('<slot>', name).replaceAll('`', '"')}`];
}

/** An alias that another slot has as well, or a fallback without effect, stops nothing, so it is no finding. */
function conflictLines({ conditions }: Decision): readonly string[] {
  return conditions
    .filter(({ reason }) => reason === 'AliasConflict' || reason === 'FallbackUnusable')
    .map((condition) => `  note: ${findingText(condition)}`);
}

function attemptLines({ lastFailure, nextAttemptAt }: Decision, now: number): readonly string[] {
  if (lastFailure === undefined) return [];
  const next = nextAttemptAt === undefined || nextAttemptAt <= now ? [] : [`  next attempt in ${secondsText(nextAttemptAt - now)}`];
  return [`  failed ${secondsText(now - lastFailure.at)} ago: ${lastFailure.failure.message}`, ...next];
}

const VERBS = { save: 'saved', restore: 'restored' } as const;

function promptLines({ direction, tokens, conversations, tookMs, problems }: NonNullable<Decision['prompts']>): readonly string[] {
  const count = conversations === 1 ? '1 conversation' : `${conversations} conversations`;
  const what = `  prompts: ${tokens.toLocaleString('en')} tokens of ${count} ${VERBS[direction]} in ${(tookMs / 1000).toFixed(1)} s`;
  return [...(conversations === 0 ? [] : [what]), ...problems.map((problem) => `  prompts: ${problem}`)];
}

function readAheadLine({ model, doneBytes, totalBytes, wasCached, problem }: NonNullable<Decision['readAhead']>): string {
  if (problem !== undefined) return `  model file not read ahead: ${problem}`;
  const amount = `${formatSize(doneBytes)} of ${formatSize(totalBytes)}, ${model}`;
  return wasCached === true ? `  model file in memory already: ${amount}` : `  model file read ahead: ${amount}`;
}

function logLines({ lastFailure }: Decision): readonly string[] {
  const { logTail = [] } = lastFailure ?? {};
  if (logTail.length === 0) return [];
  return ['  its last log lines:', ...logTail.map(({ text }) => `    ${text}`)];
}

function progressText({ what, doneBytes, totalBytes }: NonNullable<Decision['progress']>): string {
  return totalBytes === undefined
    ? `${formatSize(doneBytes)} of ${what}`
    : `${formatSize(doneBytes)} of ${formatSize(totalBytes)}, ${what}`;
}

const secondsText = (ms: number): string => (ms < 10_000 ? `${(Math.max(ms, 0) / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`);

/** One line for the slot, and one for each slot that shares the memory, where it is short. */
function memoryLines(memory: MemoryVerdict | undefined): readonly string[] {
  if (memory?.budgetBytes === undefined) return [];
  const { pool, othersBytes, candidates } = memory;
  const verdict = memory.admitted ? 'admitted' : memory.mayWait ? 'not admitted yet' : 'not admitted';
  const reserved = memory.aheadBytes === 0 ? 'nothing' : formatSize(memory.aheadBytes);
  const ahead = memory.ahead.length === 0 ? '' : ` for ${quoted(memory.ahead)}`;
  const kept = memory.keptFor === undefined ? '' : `; the rest is kept for "${memory.keptFor}", whose turn comes first`;
  const measured =
    memory.estimatedBytes === undefined ? '' : ` as measured, more than the estimate of ${formatSize(memory.estimatedBytes)}`;
  const others = othersBytes === 0 ? '' : `; other programs use ${formatSize(othersBytes)} of it`;
  const budget = `${formatSize(memory.budgetBytes)} budget${pool === HOST ? '' : ` on "${pool}"`}, ${reserved} reserved${ahead}`;
  return [
    `  memory: ${verdict}, needs ${placementText(memory)}${measured}; ${budget}${kept}${others}`,
    ...(memory.split === undefined
      ? []
      : [`  offload: the CPU computes ${memory.split.onHost}, as the devices are too small for all of it`]),
    ...(candidates.length <= 1 ? [] : ['  memory is short; the slots that share it:']),
    ...(candidates.length <= 1 ? [] : candidates).map((candidate) => `    ${candidateText(candidate, memory.budgetBytes)}`),
  ];
}

/** Lists each memory if there is more than one. */
function placementText({ placement, bytes }: MemoryVerdict): string {
  const parts = Object.entries(placement).filter(([, each]) => each > 0);
  if (parts.length === 0 || (parts.length === 1 && parts[0]?.[0] === HOST)) return formatSize(bytes);
  return parts.map(([id, each]) => `${formatSize(each)} ${id === HOST ? 'of the host' : `of "${id}"`}`).join(' and ');
}

function candidateText({ slot, bytes, priority, group, incumbent, admitted }: MemoryCandidate, budgetBytes = Infinity): string {
  const verb = incumbent ? (admitted ? 'keeps' : 'gives up') : admitted ? 'gets' : 'waits for';
  const rank = priority === 0 ? '' : ` with priority ${priority}`;
  if (bytes > budgetBytes) return `"${slot}"${rank} can never get ${formatSize(bytes)}: the whole budget is smaller`;
  return `"${slot}"${rank} ${verb} ${formatSize(bytes)}: ${WHY[group][admitted ? 'yes' : 'no']}`;
}

const WHY: Readonly<Record<MemoryGroup, { readonly yes: string; readonly no: string }>> = {
  always: { yes: 'it is always loaded', no: 'the slots before it leave too little' },
  loading: { yes: 'it is being loaded', no: 'a slot of higher priority needs it, which is always loaded' },
  turn: { yes: 'its turn has not ended', no: 'a slot of higher priority needs it, which is always loaded' },
  overdue: { yes: 'its requests have waited for more than 30 s', no: 'its requests wait until a turn ends' },
  waiting: { yes: 'its requests wait, and it is its turn', no: 'its requests wait until it is its turn' },
  served: { yes: 'it has requests, and nobody waits for its memory', no: 'its turn has ended; it finishes its requests first' },
  idle: { yes: 'it is idle, and others give way before it', no: 'it is idle, and other slots are asked for' },
  warm: {
    yes: 'it has no requests, and nobody else needs its memory',
    no: 'it has no requests, and other slots have the memory',
  },
  unloaded: { yes: 'there is room for it', no: 'nobody asks for it' },
};
