/** Asks every endpoint of a workload for its health, to sleep or wake, or for its requests. `decide/` judges that. */
import type { Endpoint, Health, ProbeIo, Provider, ProviderRegistry } from '../providers/provider.ts';
import type { Finding } from '../schema/words/failure.ts';
import { messageOf } from '../platform/error-text.ts';
import { pause } from '../platform/clock.ts';
import type { Action, ActionArgs } from './decide/facts/actions.ts';
import { isAmong } from './decide/facts/workload-history.ts';
import { isHung } from './decide/rules/workload-faults.ts';
import type { Clock, Runtime, Work } from './ports.ts';
import { createSemaphore } from '../platform/semaphore.ts';

interface AskDeps {
  readonly providers: ProviderRegistry;
  readonly probeIo: ProbeIo;
  readonly clock: Pick<Clock, 'now' | 'at'>;
  readonly runtime: Pick<Runtime, 'work'>;
}

type ProbeArgs = ActionArgs['probe'];

/** Returns the best answer of all endpoints, and the endpoints that did not pass. Never throws. */
export async function askServers(
  deps: AskDeps,
  args: ProbeArgs,
  signal: AbortSignal,
): Promise<{ readonly health: Health; readonly failingEndpoints: readonly Endpoint[] }> {
  const provider = deps.providers[args.spec.provider];
  if (provider === undefined)
    return { health: { kind: 'failing', message: `There is no provider "${args.spec.provider}"` }, failingEndpoints: [] };
  const answers = await Promise.all(args.endpoints.map(async (endpoint) => await askOne(deps, provider, { endpoint, ...args }, signal)));
  const failingEndpoints = args.endpoints.filter((_, index) => answers[index]?.kind !== 'passing');
  const best = BEST_FIRST.map((kind) => answers.find((answer) => answer.kind === kind)).find((answer) => answer !== undefined);
  return { health: best ?? { kind: 'failing', message: 'The workload has no endpoint' }, failingEndpoints };
}

export type SleepAction = Extract<Action, { name: 'sleep' | 'wake' }>;

/** Returns what went wrong. A server that says that it is awake must also answer. */
export async function askSleep(
  { providers, probeIo, clock }: Omit<AskDeps, 'runtime'>,
  { name, args }: Pick<SleepAction, 'name' | 'args'>,
  signal: AbortSignal,
): Promise<Finding | undefined> {
  const { sleep, health } = providers[args.spec.provider] ?? {};
  const ask = name === 'sleep' ? sleep?.enter : sleep?.leave;
  const until = clock.now() + args.withinMs;
  const askOneToSleep = async (endpoint: Endpoint): Promise<string | undefined> => {
    if (ask === undefined || health === undefined) return 'its engine does not say how any more';
    const problem = await ask(endpoint, probeIo, args.withinMs, signal);
    if (problem !== undefined || name === 'sleep') return problem;
    for (;;) {
      const found = await health(endpoint, probeIo, { name: args.slot, ...args }, signal);
      if (found.kind === 'passing') return undefined;
      if (signal.aborted || clock.now() + WAKE_PAUSE_MS >= until) return `it was woken and does not answer: ${found.message}`;
      await pause(clock, WAKE_PAUSE_MS, signal);
    }
  };
  const problem = (await Promise.all(args.endpoints.map(askOneToSleep))).find((each) => each !== undefined);
  if (problem === undefined) return undefined;
  if (name === 'sleep') return { reason: 'SleepFailed', message: `The server could not be put to sleep: ${problem}` };
  return { reason: 'WakeFailed', message: `The server could not be woken: ${problem}` };
}

const WAKE_PAUSE_MS = 100;

/** The requests of all endpoints. */
export async function countRequests(
  { providers, probeIo }: Pick<AskDeps, 'providers' | 'probeIo'>,
  { spec, endpoints }: ActionArgs['countRequests'],
  signal: AbortSignal,
): Promise<{ readonly count: number; readonly problem: string | undefined }> {
  const ask = providers[spec.provider]?.countRequests;
  const answers = await Promise.all(endpoints.map(async (endpoint) => (await ask?.(endpoint, probeIo, signal)) ?? { count: 0 }));
  const count = answers.reduce((sum, answer) => sum + ('count' in answer ? answer.count : 0), 0);
  return { count, problem: answers.find((answer) => 'problem' in answer)?.problem };
}

const BEST_FIRST = ['passing', 'asleep', 'loading', 'nonsense', 'failing', 'silent'] as const;

/** Reason of an abort; it is never read. Without one, each abort makes an error with a stack. */
const ENDED = 'The probe has ended';

/** Asks for health, or readiness until the first pass. A passed endpoint is also pinged: health may queue. */
async function askOne(
  deps: AskDeps,
  provider: Provider,
  args: ProbeArgs & { readonly endpoint: Endpoint },
  signal: AbortSignal,
): Promise<Health> {
  const { probeIo } = deps;
  const { endpoint, slot: name, spec, model, passed, passedEndpoints, asksModel } = args;
  const [asks, watches] = [new AbortController(), new AbortController()];
  const endBoth = (): void => {
    asks.abort(ENDED);
    watches.abort(ENDED);
  };
  if (signal.aborted) endBoth();
  signal.addEventListener('abort', endBoth, { once: true });
  let answered = false;
  const ask = async (): Promise<Health> => {
    const slot = { name, spec, model };
    const hasPassed = isAmong(endpoint, passedEndpoints);
    if (hasPassed && !asksModel && (await isAlive(endpoint, probeIo, provider.readyPath, asks.signal))) return { kind: 'passing' };
    if (provider.readiness === undefined || hasPassed) return await provider.health(endpoint, probeIo, slot, asks.signal);
    return await provider.readiness(endpoint, probeIo, slot, asks.signal);
  };
  const asking = ask().finally(() => (answered = true));
  const watching = watchSilence(deps, args, passed ? provider.readyPath : undefined, watches.signal);
  const health = await Promise.race([asking, watching]).catch(failing);
  signal.removeEventListener('abort', endBoth);
  watches.abort(ENDED);
  // To abort what has ended costs nearly as much as the probe.
  if (!answered) asks.abort(ENDED);
  return health;
}

/** If it is not, its provider determines the cause. */
async function isAlive(endpoint: Endpoint, io: ProbeIo, path: string, signal: AbortSignal): Promise<boolean> {
  const { status } = await io.request(endpoint, { method: 'GET', path, timeoutMs: WATCH_MS, signal });
  return status === 200;
}

/** Resolves when the server is silent or hung, or when a probe takes so long that it must have been forgotten. */
async function watchSilence(
  { probeIo, clock, runtime }: AskDeps,
  { endpoint, workload, spec }: ProbeArgs & { readonly endpoint: Endpoint },
  path: string | undefined,
  signal: AbortSignal,
): Promise<Health> {
  const until = clock.now() + LONGEST_PROBE_MS;
  let before: { readonly at: number; readonly work: Work | undefined } | undefined;
  for (;;) {
    await pause(clock, before === undefined ? SLOW_MS : WATCH_MS, signal);
    if (signal.aborted || clock.now() >= until) return failing(`The probe did not end within ${LONGEST_PROBE_MS / 1000} s`);
    if (path === undefined) continue;
    const { status, error } = await probeIo.request(endpoint, { method: 'GET', path, timeoutMs: WATCH_MS, signal });
    if (status === 0) return { kind: 'silent', message: `The server does not respond: ${error ?? 'no answer'}` };
    const now = { at: clock.now(), work: await runtime.work?.(workload).catch(() => undefined) };
    if (before !== undefined && isHung(spec.backend, before.work, now.work, now.at - before.at))
      return { kind: 'silent', message: `The server answers "GET ${path}" and no other request, and computes nothing` };
    before = now;
  }
}

/** A server that takes longer is watched: a healthy one answers within milliseconds. */
const SLOW_MS = 1000;
/** Between two checks whether a server that takes long answers at all, and for the answer. */
const WATCH_MS = 3000;
/** Longer than any provider waits for an answer. */
const LONGEST_PROBE_MS = 60_000;

const failing = (error: unknown): Health => ({ kind: 'failing', message: messageOf(error) });

/** Resolves with undefined if the signal aborts while the work still waits for its turn. */
export type ProbeQueue = <Result>(signal: AbortSignal, work: () => Promise<Result>) => Promise<Result | undefined>;

/** A healthy server answers within milliseconds, so more at once would not be faster. */
export const ASKED_AT_ONCE = 64;
/** A slower server, busy or frozen, no longer occupies a place, so that many of them do not block the others. */
export const COUNTS_FOR_MS = 1000;

/**
 * Limits how many servers are asked for their health at the same time. After a start, and then once a minute, the
 * probes of thousands of servers are due in the same pass; all at once they would hold up requests for seconds, take
 * over 100 MB, and time out because of each other.
 */
export function createProbeQueue(clock: Pick<Clock, 'now' | 'at'>): ProbeQueue {
  const semaphore = createSemaphore(ASKED_AT_ONCE);
  return async (signal, work) => {
    if (!(await semaphore.acquire(signal))) return undefined;
    let counts = true;
    const leave = (): void => {
      if (counts) semaphore.release();
      counts = false;
    };
    const cancel = clock.at(clock.now() + COUNTS_FOR_MS, leave);
    try {
      return await work();
    } finally {
      cancel();
      leave();
    }
  };
}
