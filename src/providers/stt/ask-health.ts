/** Asks the speech server whether it transcribes. */
import type { Endpoint, Health, ProbeIo, SlotContext } from '../provider.ts';
import { judgeAlive, judgeTranscription } from '../speech/decide/judge-health.ts';
import { PROBE_FORM_TYPE, probeForm } from '../speech/decide/probe-recording.ts';

/** The server answers within milliseconds, from another process than the one that computes. */
const ALIVE_TIMEOUT_MS = 3_000;
/** The first request may wait for a model of hundreds of megabytes to be read from the disk. */
const PROBE_TIMEOUT_MS = 30_000;

/**
 * Later probes ask for nothing that has to be computed: a recording of an hour occupies the engine for minutes. The server itself restarts an engine that crashes or that
 * exceeds the time of a request, and says so at this path.
 */
export async function askHealth(endpoint: Endpoint, io: ProbeIo, _slot: unknown, signal: AbortSignal): Promise<Health> {
  return judgeAlive(await io.request(endpoint, { method: 'GET', path: '/health', timeoutMs: ALIVE_TIMEOUT_MS, signal }));
}

/** A second of sound must be transcribed without an error before the server gets requests. */
export async function askReadiness(
  endpoint: Endpoint,
  io: ProbeIo,
  { spec }: Pick<SlotContext, 'spec'>,
  signal: AbortSignal,
): Promise<Health> {
  const alive = await askHealth(endpoint, io, undefined, signal);
  if (alive.kind !== 'passing') return alive;
  const form = { body: probeForm(spec.model.default), contentType: PROBE_FORM_TYPE };
  const request = { method: 'POST', path: '/v1/audio/transcriptions', timeoutMs: PROBE_TIMEOUT_MS, signal, ...form } as const;
  return judgeTranscription(await io.request(endpoint, request));
}
