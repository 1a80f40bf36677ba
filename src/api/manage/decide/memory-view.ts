/** Memory shares as `GET /api/slots/{name}/explain` returns them, and whether a model fits. Pure. */
import type { z } from 'zod';
import type { BoardSlot } from '../../../reconciler/board.ts';
import type { Immutable } from '../../server/answer.ts';
import type { FitListing } from '../../ports.ts';
import type { FitAnswer, MemoryShare } from '../../../schema/status/answers.ts';

export function viewMemory(memory: BoardSlot['memory']): Immutable<z.output<typeof MemoryShare>> | null {
  if (memory === undefined) return null;
  const { admitted, mayWait, placement, pool, neededBytes, budgetBytes, aheadBytes, othersBytes, keptFor, candidates } = memory;
  return {
    admitted,
    may_wait: mayWait,
    placement: Object.entries(placement).map(([where, bytes]) => ({ memory: where, bytes: Math.round(bytes) })),
    short:
      budgetBytes === undefined
        ? null
        : {
            memory: pool,
            bytes: Math.round(neededBytes),
            budget_bytes: Math.round(budgetBytes),
            promised_bytes: Math.round(aheadBytes),
            others_bytes: Math.round(othersBytes),
            kept_for: keptFor ?? null,
          },
    candidates: candidates.map(({ slot, bytes, priority, incumbent, admitted: gets, group }) => ({
      slot,
      bytes: Math.round(bytes),
      priority,
      running: incumbent,
      admitted: gets,
      because: group,
    })),
  };
}

export function viewFit(model: string, context: number | undefined, fit: FitListing): Immutable<z.output<typeof FitAnswer>> {
  const placement = Object.entries(fit.placement).map(([memory, bytes]) => ({ memory, bytes: Math.round(bytes) }));
  return {
    model,
    message: fit.message,
    backend: fit.backend,
    fits: fit.fits,
    fits_now: fit.fitsNow,
    needed_bytes: placement.reduce((sum, { bytes }) => sum + bytes, 0),
    placement,
    room_bytes: fit.roomBytes === undefined ? null : Math.max(0, Math.round(fit.roomBytes)),
    context: context ?? null,
    largest_context: fit.largestContext ?? null,
    exact: fit.exact,
    quantisations: fit.quantisations.map(({ name, sizeBytes, neededBytes, fits }) => ({
      name,
      size_bytes: Math.round(sizeBytes),
      needed_bytes: Math.round(neededBytes),
      fits,
    })),
  };
}
