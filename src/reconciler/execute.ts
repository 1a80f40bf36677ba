/** Carries actions out. One executor an action, no choices: what comes of it is written into the tracker and seen by the next pass. */
import type { Endpoint, Health, ProbeIo, ProviderRegistry } from '../providers/provider.ts';
import { fail, type Failure, type Result } from '../schema/failure.ts';
import type { SlotName, WorkloadId } from '../schema/names.ts';
import { isSameValue } from '../schema/same-value.ts';
import {
  changesWorld,
  keyOfAction,
  probeKey,
  pullImageKey,
  pullModelKey,
  type Action,
  type ActionArgs,
  type ActionName,
} from './decide/facts/actions.ts';
import type { AttemptKind } from './decide/facts/facts.ts';
import { warmingPauseMs } from './decide/steps/plan-probes.ts';
import type { Deadline } from './deadline.ts';
import { pause } from '../platform/pause.ts';
import type { Tracker } from './tracker.ts';
import type { Clock, LogLine, ModelStore, Progress, Runtime, Traffic, Workload } from './ports.ts';
import { messageOf } from '../platform/error-text.ts';

export interface ExecuteDeps {
  readonly runtime: Runtime;
  readonly models: ModelStore;
  readonly traffic: Traffic;
  readonly providers: ProviderRegistry;
  readonly probeIo: ProbeIo;
  readonly clock: Clock;
  readonly within: Deadline;
  readonly tracker: Tracker;
  /** Slots that wait for this pull now. */
  readonly waitingFor: (key: string) => readonly SlotName[];
  readonly onProgress: (what: 'model' | 'image', bytes: number) => void;
}

/** How an action ended. `none`: it was cancelled, and nothing is to be said. */
export type Outcome =
  | { readonly kind: 'done'; /** It brought nothing new. */ readonly asBefore?: true }
  | { readonly kind: 'failed'; readonly failure: Failure }
  | { readonly kind: 'none' };

export interface Executor {
  /** Begins an action. `onEnd` is called once, when its result is in the tracker. */
  begin(action: Action, onEnd: (action: Action, outcome: Outcome) => void): void;
  /** Gives up everything under way that changes something: another controller carries on. */
  abandon(): void;
  /** Ends everything under way, and resolves when it has ended. */
  close(): Promise<void>;
}

type Execute<Name extends ActionName> = (args: ActionArgs[Name], slot: SlotName, signal: AbortSignal) => Promise<Outcome>;

const DONE: Outcome = { kind: 'done' };
const NONE: Outcome = { kind: 'none' };
/** As much as a person reads. */
const LOG_TAIL_LINES = 20;
const LOG_TAIL_WITHIN_MS = 2000;

export function createExecutor(deps: ExecuteDeps): Executor {
  const { tracker, clock } = deps;
  const aborts = new Map<string, AbortController>();
  const ends = new Set<Promise<void>>();
  const executors: { readonly [Name in ActionName]: Execute<Name> } = {
    pullImage: async ({ image }, _slot, signal) =>
      await pull(deps, pullImageKey(image), 'pull-image', signal, (onProgress) => deps.runtime.pull(image, onProgress, signal)),
    pullModel: async ({ model }, _slot, signal) =>
      await pull(deps, pullModelKey(model), 'pull-model', signal, (onProgress) => deps.models.pull(model, onProgress, signal)),
    cancelPull: async ({ key }) => {
      tracker.cancelled(key);
      aborts.get(key)?.abort();
      return DONE;
    },
    apply: async (args, slot, signal) => await apply(deps, args, slot, signal),
    probe: async (args, _slot, signal) => await probe(deps, args, signal),
    noteCrash: async (args, _slot, signal) => await noteCrash(deps, args, signal),
    stop: async (args, _slot, signal) => {
      aborts.get(probeKey(args.workload))?.abort();
      return await stop(deps, args, signal);
    },
  };
  return {
    begin(action, onEnd) {
      const key = keyOfAction(action);
      const abort = new AbortController();
      aborts.set(key, abort);
      tracker.begin(action, clock.now());
      const end = (outcome: Outcome): void => {
        aborts.delete(key);
        tracker.end(action);
        onEnd(action, outcome);
      };
      const running = run(executors, action, abort.signal).then(end, (error: unknown) => end(broken(deps, action, error)));
      ends.add(running);
      void running.finally(() => ends.delete(running));
    },
    abandon() {
      for (const { action } of tracker.underWay.values()) if (changesWorld(action)) aborts.get(keyOfAction(action))?.abort();
    },
    async close() {
      for (const abort of aborts.values()) abort.abort();
      await Promise.all(ends);
    },
  };
}

async function run(executors: { readonly [Name in ActionName]: Execute<Name> }, action: Action, signal: AbortSignal): Promise<Outcome> {
  switch (action.name) {
    case 'pullImage':
      return await executors.pullImage(action.args, action.slot, signal);
    case 'pullModel':
      return await executors.pullModel(action.args, action.slot, signal);
    case 'cancelPull':
      return await executors.cancelPull(action.args, action.slot, signal);
    case 'apply':
      return await executors.apply(action.args, action.slot, signal);
    case 'probe':
      return await executors.probe(action.args, action.slot, signal);
    case 'noteCrash':
      return await executors.noteCrash(action.args, action.slot, signal);
    case 'stop':
      return await executors.stop(action.args, action.slot, signal);
    default:
      return action satisfies never;
  }
}

async function pull(
  { tracker, clock, waitingFor, onProgress }: ExecuteDeps,
  key: string,
  kind: AttemptKind,
  signal: AbortSignal,
  work: (onProgress: (progress: Progress) => void) => Promise<Result<void>>,
): Promise<Outcome> {
  let bytes = 0;
  const result = await work((progress) => {
    tracker.progress(key, progress);
    onProgress(kind === 'pull-image' ? 'image' : 'model', Math.max(0, progress.doneBytes - bytes));
    bytes = progress.doneBytes;
  }).catch((error: unknown) => fail('retry', 'InternalError', messageOf(error)));
  if (result.ok) return DONE;
  if (signal.aborted) return NONE;
  for (const slot of waitingFor(key)) tracker.failed(slot, { kind, failure: result.failure }, clock.now());
  return { kind: 'failed', failure: result.failure };
}

async function apply(
  { runtime, tracker, clock }: ExecuteDeps,
  { workload, updatesInPlace }: ActionArgs['apply'],
  slot: SlotName,
  signal: AbortSignal,
): Promise<Outcome> {
  const result = await runtime.apply(workload, signal);
  if (result.ok) {
    if (updatesInPlace === undefined) tracker.started(result.value, slot, clock.now());
    else noteInPlaceUpdate(tracker, updatesInPlace, workload, clock.now());
    return DONE;
  }
  const { failure } = result;
  if (signal.aborted) return NONE;
  if (failure.reason === 'PortTaken') tracker.portTaken(workload.port.host, clock.now());
  tracker.failed(slot, { kind: 'apply', failure }, clock.now());
  return { kind: 'failed', failure };
}

/** A repair counts, lest two fight over a workload for ever; an update is no failure of anybody. */
function noteInPlaceUpdate(
  tracker: Tracker,
  update: NonNullable<ActionArgs['apply']['updatesInPlace']>,
  { slot, generation }: Workload,
  now: number,
): void {
  tracker.updated(update.workload, generation, now);
  if (!update.altered) return;
  const failure: Failure = { kind: 'retry', reason: 'WorkloadAltered', message: 'It was altered from outside, and put right' };
  tracker.failed(slot, { kind: 'drift', failure, workload: update.workload }, now);
}

async function probe(deps: ExecuteDeps, args: ActionArgs['probe'], signal: AbortSignal): Promise<Outcome> {
  const { clock, tracker } = deps;
  const until = clock.now() + args.patienceMs;
  for (;;) {
    const { health, failingEndpoints } = await askAll(deps, args, signal);
    if (signal.aborted) return NONE;
    const waitMs = warmingPauseMs(clock.now() - args.since);
    if (health.kind === 'passing' || clock.now() + waitMs >= until) {
      const before = tracker.histories.get(args.workload)?.probe;
      const asBefore = health.kind === 'passing' && before?.status === 'passing' && isSameValue(before.failingEndpoints, failingEndpoints);
      tracker.probed(args.workload, health, failingEndpoints, clock.now());
      return asBefore ? { kind: 'done', asBefore } : DONE;
    }
    await pause(clock, waitMs, signal);
    if (signal.aborted) return NONE;
  }
}

/** The best answer of all its endpoints, and those that did not pass. */
async function askAll(
  { providers, probeIo }: ExecuteDeps,
  args: ActionArgs['probe'],
  signal: AbortSignal,
): Promise<{ readonly health: Health; readonly failingEndpoints: readonly Endpoint[] }> {
  const provider = providers[args.spec.provider];
  if (provider === undefined)
    return { health: { kind: 'failing', message: `There is no provider "${args.spec.provider}"` }, failingEndpoints: [] };
  const slot = { name: args.slot, spec: args.spec, model: args.model };
  const answers = await Promise.all(
    args.endpoints.map(async (endpoint) => await provider.health(endpoint, probeIo, slot, signal).catch(failing)),
  );
  const failingEndpoints = args.endpoints.filter((_, index) => answers[index]?.kind !== 'passing');
  const best = (['passing', 'loading'] as const).map((kind) => answers.find((answer) => answer.kind === kind));
  return { health: best[0] ?? best[1] ?? answers[0] ?? { kind: 'failing', message: 'It has no endpoint' }, failingEndpoints };
}

async function noteCrash(
  deps: ExecuteDeps,
  { slot, workload, exitId, failure, startsAgain }: ActionArgs['noteCrash'],
  signal: AbortSignal,
): Promise<Outcome> {
  const { tracker, clock } = deps;
  const now = clock.now();
  tracker.exitNoted(workload, exitId);
  if (failure === undefined) return DONE;
  tracker.failed(slot, { kind: 'crash', failure: { kind: 'retry', ...failure }, workload, restartedInPlace: true }, now);
  if (startsAgain) tracker.startedAgain(slot);
  tracker.logTail(slot, { workload, at: now }, await logTail(deps, workload, signal));
  return DONE;
}

async function stop(deps: ExecuteDeps, args: ActionArgs['stop'], signal: AbortSignal): Promise<Outcome> {
  const { runtime, traffic, tracker, clock } = deps;
  const { slot, workload, failure } = args;
  const now = clock.now();
  if (failure !== undefined) {
    const { kind, reason, message } = failure;
    tracker.failed(slot, { kind, failure: { kind: 'retry', reason, message }, workload }, now);
  }
  if (args.abort) traffic.abort(workload);
  if (failure !== undefined && failure.kind !== 'drift')
    tracker.logTail(slot, { workload, at: now }, await logTail(deps, workload, signal));
  if (signal.aborted) return NONE;
  const result = await runtime.stop(workload, { graceMs: args.graceMs }, signal);
  if (result.ok) return DONE;
  if (signal.aborted) return NONE;
  tracker.stopFailed(workload, result.failure, clock.now());
  return { kind: 'failed', failure: result.failure };
}

async function logTail({ runtime, within }: ExecuteDeps, workload: WorkloadId, signal: AbortSignal): Promise<readonly LogLine[]> {
  const lines: LogLine[] = [];
  const read = async (own: AbortSignal): Promise<void> => {
    for await (const line of runtime.logs(workload, { tail: LOG_TAIL_LINES, follow: false }, own)) lines.push(line);
  };
  await within(LOG_TAIL_WITHIN_MS, signal, read).catch(() => undefined);
  return lines.slice(-LOG_TAIL_LINES);
}

/** An adapter threw, which none should: a failure like any other, so that its slot backs off. */
function broken({ tracker, clock }: ExecuteDeps, action: Action, error: unknown): Outcome {
  const failure: Failure = { kind: 'retry', reason: 'InternalError', message: messageOf(error) };
  if (action.name === 'stop') tracker.stopFailed(action.args.workload, failure, clock.now());
  if (action.name === 'apply') tracker.failed(action.slot, { kind: 'apply', failure }, clock.now());
  return { kind: 'failed', failure };
}

function failing(error: unknown): Health {
  return { kind: 'failing', message: messageOf(error) };
}
