/** Executes actions without making choices. The tracker records each result, where the next pass finds it. */
import type { ProbeIo, ProviderRegistry } from '../providers/provider.ts';
import { fail, type Failure } from '../schema/words/failure.ts';
import type { SlotName, WorkloadId } from '../schema/words/names.ts';
import { isSameValue } from '../schema/words/same-value.ts';
import { isSound, type ProbeFact } from './decide/facts/workload-history.ts';
import { PROMPTS, withoutPrompts } from './decide/facts/workload.ts';
import {
  changesWorld,
  evaluateKey,
  keyOfAction,
  probeKey,
  sleepKey,
  type Action,
  type ActionArgs,
  type Pull,
} from './decide/facts/actions.ts';
import { warmingPauseMs } from './decide/steps/plan-probes.ts';
import { askServers, askSleep, countRequests, createProbeQueue, type ProbeQueue, type SleepAction } from './ask-servers.ts';
import { evaluateModel, type EvaluateDeps } from './evaluate-model.ts';
import type { Deadline } from './observe.ts';
import { pause } from '../platform/clock.ts';
import type { Tracker } from './tracker.ts';
import type { Clock, LogLine, ModelStore, Progress, PromptReport, PromptStore, Runtime, Traffic } from './ports.ts';
import { messageOf } from '../platform/error-text.ts';

export interface ExecuteDeps extends EvaluateDeps {
  readonly runtime: Runtime;
  readonly models: ModelStore;
  readonly traffic: Traffic;
  readonly providers: ProviderRegistry;
  readonly probeIo: ProbeIo;
  readonly clock: Clock;
  /** Default: no prompts are kept. */
  readonly prompts?: PromptStore | undefined;
  readonly within: Deadline;
  readonly tracker: Tracker;
  /** Slots that wait for this pull now. */
  readonly waitingFor: (key: string) => readonly SlotName[];
  readonly onProgress: (what: 'model' | 'image', bytes: number) => void;
}

/** How an action ended. `none`: it was cancelled, and there is nothing to report. */
export type Outcome =
  | { readonly kind: 'done'; /** The result is the same as last time. */ readonly asBefore?: true }
  | { readonly kind: 'failed'; readonly failure: Failure }
  | { readonly kind: 'none' };

interface OwnDeps extends ExecuteDeps {
  readonly inTurn: ProbeQueue;
}

type Aborts = Map<string, AbortController>;

const DONE: Outcome = { kind: 'done' };
const NONE: Outcome = { kind: 'none' };
/** Enough to show the cause of a crash. */
const LOG_TAIL_LINES = 20;
const LOG_TAIL_WITHIN_MS = 2000;
/** A server that takes longer is stopped without: others may wait for its memory. */
const SAVE_BUDGET_MS = 5000;
/** Between two saves of a server that goes on: each turn of a conversation would write all of it again. */
const SAVE_PAUSE_MS = 60_000;
const RESTORE_BUDGET_MS = 10_000;

export function createExecutor(deps: ExecuteDeps) {
  const { tracker, clock } = deps;
  const aborts: Aborts = new Map();
  const own: OwnDeps = { ...deps, inTurn: createProbeQueue(clock) };
  const ends = new Set<Promise<void>>();
  return {
    /** Begins an action. Calls `onEnd` once, after its result was recorded in the tracker. */
    begin(action: Action, onEnd: (action: Action, outcome: Outcome) => void): void {
      const key = keyOfAction(action);
      const abort = new AbortController();
      aborts.set(key, abort);
      tracker.begin(action, clock.now());
      const end = (outcome: Outcome): void => {
        aborts.delete(key);
        tracker.end(action);
        onEnd(action, outcome);
      };
      const running = carryOut(own, action, aborts, abort.signal).then(end, (error: unknown) =>
        end(broken(deps, action, error, abort.signal)),
      );
      ends.add(running);
      void running.finally(() => ends.delete(running));
    },
    /** Aborts every action under way that changes the world, because another controller has taken over. */
    abandon(): void {
      for (const { action } of tracker.underWay.values()) if (changesWorld(action)) aborts.get(keyOfAction(action))?.abort();
    },
    /** Aborts every action under way, and resolves once all have ended. */
    async close(): Promise<void> {
      for (const abort of aborts.values()) abort.abort();
      await Promise.all(ends);
    },
  };
}

/** The one place where an action's name chooses what is done. */
async function carryOut(deps: OwnDeps, action: Action, aborts: Aborts, signal: AbortSignal): Promise<Outcome> {
  switch (action.name) {
    case 'pullImage':
    case 'pullModel':
      return await pull(deps, action, signal);
    case 'cancelPull':
      deps.tracker.cancelled(action.args.key);
      aborts.get(action.args.key)?.abort();
      return DONE;
    case 'apply':
      return await apply(deps, action.args, action.slot, signal);
    case 'probe':
      return await probe(deps, action.args, signal);
    case 'noteCrash':
      return await noteCrash(deps, action.args, signal);
    case 'sleep':
    case 'wake':
      return await setSleep(deps, action, signal);
    case 'evaluate':
      return (await evaluateModel(deps, action.args, signal)) ? DONE : NONE;
    case 'settle':
      deps.source?.settle?.(action.slot, action.args.settlement);
      return DONE;
    case 'countRequests':
      deps.tracker.histories.counted(action.args.workload, await countRequests(deps, action.args, signal), deps.clock.now());
      return DONE;
    case 'stop':
      for (const key of [probeKey, sleepKey]) aborts.get(key(action.args.workload))?.abort();
      if (deps.tracker.isEvaluated(action.args)) aborts.get(evaluateKey(action.slot))?.abort();
      return await stop(deps, action.args, signal);
    default:
      return action satisfies never;
  }
}

async function pull(deps: ExecuteDeps, action: Pull, signal: AbortSignal): Promise<Outcome> {
  const { runtime, models, tracker, clock } = deps;
  const key = keyOfAction(action);
  const what = action.name === 'pullImage' ? 'image' : 'model';
  let bytes = 0;
  const onProgress = (progress: Progress): void => {
    tracker.progress(key, progress);
    deps.onProgress(what, Math.max(0, progress.doneBytes - bytes));
    bytes = progress.doneBytes;
  };
  const pulling =
    action.name === 'pullImage' ? runtime.pull(action.args.image, onProgress, signal) : models.pull(action.args.model, onProgress, signal);
  const result = await pulling.catch((error: unknown) => fail('retry', 'InternalError', messageOf(error)));
  if (result.ok) return DONE;
  if (signal.aborted) return NONE;
  for (const slot of deps.waitingFor(key)) tracker.attempts.failed(slot, { kind: `pull-${what}`, failure: result.failure }, clock.now());
  return { kind: 'failed', failure: result.failure };
}

async function apply(
  { runtime, tracker, clock, prompts }: ExecuteDeps,
  { workload, updatesInPlace }: ActionArgs['apply'],
  slot: SlotName,
  signal: AbortSignal,
): Promise<Outcome> {
  const keeps = PROMPTS in workload.env && (await prompts?.prepare(slot)) === undefined;
  const result = await runtime.apply(keeps ? workload : withoutPrompts(workload), signal);
  if (result.ok) {
    const now = clock.now();
    if (updatesInPlace === undefined) tracker.started(result.value, slot, now);
    else tracker.histories.updatedInPlace(updatesInPlace.workload, workload.generation, now);
    // Repairs are counted, so that two programs that fight over a workload are noticed.
    if (updatesInPlace?.altered === true) tracker.attempts.repaired(slot, updatesInPlace.workload, now);
    return DONE;
  }
  const { failure } = result;
  if (signal.aborted) return NONE;
  if (failure.reason === 'PortTaken') tracker.portTaken(workload.port.host, clock.now());
  tracker.attempts.failed(slot, { kind: 'apply', failure }, clock.now());
  return { kind: 'failed', failure };
}

async function probe(deps: OwnDeps, args: ActionArgs['probe'], signal: AbortSignal): Promise<Outcome> {
  const { clock, tracker } = deps;
  await saved(deps, args, SAVE_PAUSE_MS, signal);
  const until = clock.now() + args.patienceMs;
  for (;;) {
    const answer = await deps.inTurn(signal, async () => await askServers(deps, args, signal));
    if (answer === undefined || signal.aborted) return NONE;
    const { health, failingEndpoints } = answer;
    const waitMs = warmingPauseMs(clock.now() - args.since);
    // A model that computes nonsense computes the same when it is asked again.
    if (health.kind === 'passing' || health.kind === 'asleep' || health.kind === 'nonsense' || clock.now() + waitMs >= until) {
      if (health.kind === 'passing' && args.restores !== undefined) {
        moved(deps, args.slot, await deps.prompts?.restore(args.restores, RESTORE_BUDGET_MS, signal));
        if (signal.aborted) return NONE;
      }
      const before = tracker.histories.all.get(args.workload)?.probe;
      tracker.histories.probed(args.workload, { health, endpoints: args.endpoints, failingEndpoints }, clock.now());
      const asBefore = passesAsBefore(before, tracker.histories.all.get(args.workload)?.probe);
      return asBefore ? { kind: 'done', asBefore } : DONE;
    }
    await pause(clock, waitMs, signal);
    if (signal.aborted) return NONE;
  }
}

function passesAsBefore(before: ProbeFact | undefined, after: ProbeFact | undefined): boolean {
  if (before?.status !== after?.status || before === undefined || after === undefined || !isSound(after.status)) return false;
  return isSameValue(before.failingEndpoints, after.failingEndpoints) && isSameValue(before.passedEndpoints, after.passedEndpoints);
}

async function setSleep({ traffic, tracker, ...deps }: OwnDeps, { name, args }: SleepAction, signal: AbortSignal): Promise<Outcome> {
  // Requests have entered after they were counted.
  if (name === 'sleep' && (await traffic.settle?.(args.workload)) === false) return NONE;
  const fault = await askSleep(deps, { name, args }, signal);
  // A server whose answer nobody waits for may fall asleep nevertheless: it gets no request before it was woken.
  if (signal.aborted && name === 'wake') return NONE;
  const known = signal.aborted ? undefined : fault;
  tracker.histories.slept(args.workload, { name, endpoints: args.endpoints, fault: known }, deps.clock.now());
  if (signal.aborted) return NONE;
  return fault === undefined ? DONE : { kind: 'failed', failure: { kind: 'retry', ...fault } };
}

async function noteCrash(
  deps: ExecuteDeps,
  { slot, workload, exitId, failure, startsAgain }: ActionArgs['noteCrash'],
  signal: AbortSignal,
): Promise<Outcome> {
  const { tracker, clock } = deps;
  const now = clock.now();
  tracker.histories.exitNoted(workload, exitId);
  if (failure === undefined) return DONE;
  tracker.attempts.failed(slot, { kind: 'crash', failure: { kind: 'retry', ...failure }, workload, restartedInPlace: true }, now);
  if (startsAgain) tracker.attempts.restartedInPlace(slot);
  tracker.attempts.addLogTail(slot, { workload, at: now }, await logTail(deps, workload, signal));
  return DONE;
}

async function stop(deps: ExecuteDeps, args: ActionArgs['stop'], signal: AbortSignal): Promise<Outcome> {
  const { runtime, traffic, tracker, clock } = deps;
  const { slot, workload, failure } = args;
  const now = clock.now();
  if (failure !== undefined) {
    const { kind, reason, message, port } = failure;
    if (kind === 'drift') tracker.attempts.repaired(slot, workload, now);
    else tracker.attempts.failed(slot, { kind, failure: { kind: 'retry', reason, message }, workload, port }, now);
  }
  if (args.abort) traffic.abort(workload);
  const settled = traffic.settle?.(workload);
  if (failure !== undefined && failure.kind !== 'drift')
    tracker.attempts.addLogTail(slot, { workload, at: now }, await logTail(deps, workload, signal));
  const isAsPlanned = (await settled) ?? true;
  if (signal.aborted) return NONE;
  // Requests have entered after they were counted: the next pass lets them finish.
  if (!isAsPlanned && !args.abort && failure === undefined) return NONE;
  await saved(deps, args, 0, signal);
  if (signal.aborted) return NONE;
  const result = await runtime.stop(workload, { graceMs: args.graceMs }, signal);
  if (result.ok) return DONE;
  if (signal.aborted) return NONE;
  tracker.histories.stopFailed(workload, result.failure.message, clock.now());
  return { kind: 'failed', failure: result.failure };
}

async function saved(
  deps: ExecuteDeps,
  { slot, saves }: Pick<ActionArgs['stop'], 'slot' | 'saves'>,
  pauseMs: number,
  signal: AbortSignal,
): Promise<void> {
  if (saves === undefined) return;
  const { usedAt } = saves;
  moved(deps, slot, await deps.prompts?.save(saves, { budgetMs: SAVE_BUDGET_MS, usedAt, pauseMs }, signal));
}

function moved({ tracker }: ExecuteDeps, slot: SlotName, report: PromptReport | undefined): void {
  if (report !== undefined) tracker.attempts.promptsMoved(slot, report);
}

async function logTail({ runtime, within }: ExecuteDeps, workload: WorkloadId, signal: AbortSignal): Promise<readonly LogLine[]> {
  const lines: LogLine[] = [];
  const read = async (own: AbortSignal): Promise<void> => {
    for await (const line of runtime.logs(workload, { tail: LOG_TAIL_LINES, follow: false }, own)) lines.push(line);
  };
  await within(LOG_TAIL_WITHIN_MS, signal, read).catch(() => undefined);
  return lines.slice(-LOG_TAIL_LINES);
}

/** An adapter threw, which none should do. That is a failure like any other, so that its slot backs off. */
function broken({ tracker, clock }: ExecuteDeps, action: Action, error: unknown, signal: AbortSignal): Outcome {
  if (signal.aborted) return NONE;
  const failure: Failure = { kind: 'retry', reason: 'InternalError', message: messageOf(error) };
  if (action.name === 'stop') tracker.histories.stopFailed(action.args.workload, failure.message, clock.now());
  if (action.name === 'apply') tracker.attempts.failed(action.slot, { kind: 'apply', failure }, clock.now());
  if (action.name === 'sleep' || action.name === 'wake')
    tracker.histories.slept(action.args.workload, { ...action, endpoints: [], fault: failure }, clock.now());
  if (action.name === 'countRequests') tracker.histories.counted(action.args.workload, { count: 0, problem: failure.message }, clock.now());
  return { kind: 'failed', failure };
}
