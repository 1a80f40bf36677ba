/** A decision as text: for logs, `svcctl plan`, `svcctl explain` and golden tests. Times are relative to `now`. Pure. */
import type { SlotName } from '../../../schema/names.ts';
import type { Reason } from '../../../schema/reasons.ts';
import { changesWorld, type Action, type ActionArgs } from '../facts/actions.ts';
import type { Attempt, Decision, Finding, Plan } from '../facts/facts.ts';
import { sizeText } from './quantity-text.ts';

/** Why one slot is what it is, line by line, the most telling first. */
export function explainSlot(decision: Decision, actions: readonly Action[], now: number): string {
  const lines = [
    `Slot "${decision.name}" is ${decision.state}${decision.wanted ? '' : ', as it is not wanted to run'}`,
    ...decision.findings.map((finding) => `  because ${findingText(finding)}`),
    ...actions.filter(changesWorld).map((action) => `  does ${actionText(action)}`),
    ...memoryLines(decision),
    ...attemptLines(decision, now),
    ...(decision.progress === undefined ? [] : [`  has fetched ${progressText(decision.progress)}`]),
    ...(decision.draining.length === 0 ? [] : [`  waits for the requests of ${quoted(decision.draining)} to end`]),
    ...(decision.serving === undefined ? [] : [`  answers through "${decision.serving}"`]),
  ];
  return lines.join('\n');
}

/** All that a plan does, slot by slot; slots at rest are left out. */
export function explain(plan: Plan, now: number): string {
  const bySlot = Map.groupBy(plan.actions.filter(changesWorld), ({ slot }) => slot);
  const own = [...plan.decisions.values()]
    .filter(({ name, findings }) => bySlot.has(name) || findings.length > 0)
    .map((decision) => explainSlot(decision, bySlot.get(decision.name) ?? [], now));
  const orphans = [...bySlot]
    .filter(([name]) => !plan.decisions.has(name))
    .map(([name, actions]) => [`Slot "${name}" is gone`, ...actions.map((action) => `  does ${actionText(action)}`)].join('\n'));
  const all = [...own, ...orphans];
  return all.length === 0 ? 'Nothing to do: everything is as it shall be' : all.join('\n');
}

export interface Change {
  readonly slot: SlotName;
  readonly action: string;
  readonly because: Reason;
  readonly message: string;
}

/** What a plan changes; probes change nothing. */
export function listChanges(plan: Plan): readonly Change[] {
  return plan.actions.filter(changesWorld).map((action) => ({
    slot: action.slot,
    action: action.name,
    because: action.because.reason,
    message: `${sentence(action)}: ${action.because.message}`,
  }));
}

/** What an action does, as the rest of a sentence: `start "svc-slot-primary" on port 18080`. */
export function actionText(action: Action): string {
  return `${sentence(action)}: ${action.because.message}`;
}

function sentence(action: Action): string {
  switch (action.name) {
    case 'pullImage':
      return `pull image "${action.args.image.reference}"`;
    case 'pullModel':
      return `pull model "${action.args.model}"`;
    case 'cancelPull':
      return `cancel "${action.args.key}"`;
    case 'apply':
      return applyText(action.args);
    case 'probe':
      return `probe "${action.args.workload}"`;
    case 'noteCrash':
      return `note the crash of "${action.args.workload}"`;
    case 'stop':
      return `stop "${action.args.workload}"${action.args.abort ? ', ending its requests' : ''}`;
    default:
      return action satisfies never;
  }
}

function applyText({ workload, origin, inPlace }: ActionArgs['apply']): string {
  if (inPlace !== undefined) return `${inPlace.altered ? 'repair' : 'update'} "${workload.name}" in place`;
  const { cluster, port } = workload;
  const where =
    cluster === undefined ? `on port ${port.host}` : `in ${cluster.replicas} ${cluster.replicas === 1 ? 'replica' : 'replicas'}`;
  return `start "${workload.name}" with model "${origin.model.id}" ${where}`;
}

function findingText({ reason, message }: Finding): string {
  return `${message} [${reason}]`;
}

function memoryLines({ memory }: Decision): readonly string[] {
  if (memory?.budgetBytes === undefined) return [];
  const verdict = memory.admitted ? 'admitted' : memory.mayWait ? 'not admitted for now' : 'not admitted';
  const ahead = memory.ahead.length === 0 ? '' : ` to ${quoted(memory.ahead)}`;
  const sum = `${sizeText(memory.bytes)} needed, ${sizeText(memory.aheadBytes)} of ${sizeText(memory.budgetBytes)} promised before it${ahead}`;
  return [`  memory: ${verdict}, ${sum}`];
}

function attemptLines({ lastFailure, nextAttemptAt }: Decision, now: number): readonly string[] {
  if (lastFailure === undefined) return [];
  const next = nextAttemptAt === undefined ? [] : [`  tries again in ${secondsText(nextAttemptAt - now)}`];
  return [`  failed ${secondsText(now - lastFailure.at)} ago: ${lastFailure.failure.message}`, ...next, ...logLines(lastFailure)];
}

function logLines({ logTail }: Attempt): readonly string[] {
  if (logTail === undefined || logTail.length === 0) return [];
  return ['  its last words:', ...logTail.map(({ text }) => `    ${text}`)];
}

function progressText({ what, doneBytes, totalBytes }: NonNullable<Decision['progress']>): string {
  return totalBytes === undefined ? `${sizeText(doneBytes)} of ${what}` : `${sizeText(doneBytes)} of ${sizeText(totalBytes)}, ${what}`;
}

function secondsText(ms: number): string {
  return ms < 10_000 ? `${(Math.max(ms, 0) / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`;
}

function quoted(values: readonly string[]): string {
  return values.map((value) => `"${value}"`).join(', ');
}
