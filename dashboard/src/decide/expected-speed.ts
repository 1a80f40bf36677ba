/** How fast a model would write on this machine, from what others have done here. Pure. */
import type { ModelEntry, UsageRow } from '../types.ts';

/** What a model has done on this machine. */
export interface MeasuredSpeed {
  readonly model: string;
  readonly sizeBytes: number;
  readonly tokensPerSecond: number;
}

/** Fewer say little: a prompt takes a part of the time. */
const LEAST_TOKENS = 200;
/** A model so many times larger or smaller may be limited by something else. */
const MOST_RATIO = 8;

/** `usage`: grouped by model. Slots that share a machine and requests that overlap make it slower than it could be. */
export function measuredSpeeds(usage: readonly UsageRow[], models: readonly ModelEntry[]): readonly MeasuredSpeed[] {
  return usage.flatMap(({ model, output_tokens: tokens, busy_seconds: seconds, estimated_requests: guessed }) => {
    const sizeBytes = models.find(({ id }) => id === model)?.size_bytes ?? 0;
    if (model === null || sizeBytes === 0 || tokens < LEAST_TOKENS || seconds <= 0 || guessed > 0) return [];
    return { model, sizeBytes, tokensPerSecond: tokens / seconds };
  });
}

/**
 * A server reads all weights for each token, so that half the size is twice as fast. A mixture of experts reads fewer,
 * and is faster than this says. Undefined if nothing like it has run here.
 */
export function expectedSpeed(
  sizeBytes: number,
  measured: readonly MeasuredSpeed[],
): { readonly tokensPerSecond: number; readonly like: string } | undefined {
  const distance = (each: MeasuredSpeed): number => Math.abs(Math.log(each.sizeBytes / sizeBytes));
  const nearest = measured.toSorted((one, other) => distance(one) - distance(other))[0];
  if (nearest === undefined || sizeBytes <= 0 || distance(nearest) > Math.log(MOST_RATIO)) return undefined;
  return { tokensPerSecond: (nearest.tokensPerSecond * nearest.sizeBytes) / sizeBytes, like: nearest.model };
}
