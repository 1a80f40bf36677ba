/** Asks the speech server whether it speaks. */
import type { Endpoint, Health, ProbeIo, SlotContext } from '../provider.ts';
import { judgeAlive, judgeSpeech } from '../speech/decide/judge-health.ts';

/** The server answers within milliseconds, from another process than the one that computes. */
const ALIVE_TIMEOUT_MS = 3_000;
/** The first request may wait for a model of hundreds of megabytes to be read from the disk. */
const PROBE_TIMEOUT_MS = 30_000;
/** Letters that every model reads in some way. */
const TEXT = 'Hello.';

/** Later probes ask for nothing that has to be computed, as for speech-to-text. */
export async function askHealth(endpoint: Endpoint, io: ProbeIo, _slot: unknown, signal: AbortSignal): Promise<Health> {
  return judgeAlive(await io.request(endpoint, { method: 'GET', path: '/health', timeoutMs: ALIVE_TIMEOUT_MS, signal }));
}

/** A short text must be spoken, and not as silence, before the server gets requests. */
export async function askReadiness(
  endpoint: Endpoint,
  io: ProbeIo,
  { spec }: Pick<SlotContext, 'spec'>,
  signal: AbortSignal,
): Promise<Health> {
  const alive = await askHealth(endpoint, io, undefined, signal);
  if (alive.kind !== 'passing') return alive;
  const body = JSON.stringify({ model: spec.model.default, input: TEXT, response_format: 'wav' });
  const request = { method: 'POST', path: '/v1/audio/speech', body, timeoutMs: PROBE_TIMEOUT_MS, signal } as const;
  return judgeSpeech(await io.request(endpoint, request));
}
