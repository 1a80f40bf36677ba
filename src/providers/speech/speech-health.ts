/** Asks the speech server whether it is there, and whether it does what its slot is for. */
import type { Endpoint, Health, ProbeIo, ProbeResponse } from '../provider.ts';
import { judgeAlive } from './decide/judge-health.ts';

/** The server answers within milliseconds, from another process than the one that computes. */
const ALIVE_TIMEOUT_MS = 3_000;
/** The first request may wait for a model of hundreds of megabytes to be read from the disk. */
const PROBE_TIMEOUT_MS = 30_000;

/** A small request for what the slot is for, and what its answer says. */
export interface SpeechCheck {
  readonly path: string;
  readonly body: string | Uint8Array;
  /** Default: JSON. */
  readonly contentType?: string;
  judge(response: ProbeResponse): Health;
}

/**
 * Later probes ask for nothing that has to be computed: a recording of an hour occupies the engine for minutes. The server itself restarts an engine that crashes or that
 * exceeds the time of a request, and says so at this path.
 */
export async function askHealth(endpoint: Endpoint, io: ProbeIo, _slot: unknown, signal: AbortSignal): Promise<Health> {
  return judgeAlive(await io.request(endpoint, { method: 'GET', path: '/health', timeoutMs: ALIVE_TIMEOUT_MS, signal }));
}

/** The check must pass before the server gets requests. */
export async function askReadiness(
  endpoint: Endpoint,
  io: ProbeIo,
  { judge, ...request }: SpeechCheck,
  signal: AbortSignal,
): Promise<Health> {
  const alive = await askHealth(endpoint, io, undefined, signal);
  if (alive.kind !== 'passing') return alive;
  return judge(await io.request(endpoint, { method: 'POST', ...request, timeoutMs: PROBE_TIMEOUT_MS, signal }));
}
