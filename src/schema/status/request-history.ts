/** When requests needed a slot, without anything that they contained: what `prewarm = "learned"` learns from. */
import { z } from 'zod';
import type { SlotName } from '../words/names.ts';

export const STEP_MINUTES = 10;
export const STEPS_PER_DAY = (24 * 60) / STEP_MINUTES;
/** Six weeks. */
export const KEPT_DAYS = 42;
/** Whether it is worthwhile to load the slot ahead follows from its last forecasts. */
export const KEPT_OUTCOMES = 10;

export const RequestHistory = z.object({
  /** Days on which the service ran, oldest first: local date, and for each step of it `1` if the slot was needed. */
  days: z
    .array(z.object({ date: z.iso.date(), steps: z.string().regex(new RegExp(`^[01]{${STEPS_PER_DAY}}$`)) }).readonly())
    .max(KEPT_DAYS)
    .readonly(),
  /** For each of the last forecasts, oldest first, whether a request came. */
  outcomes: z.array(z.boolean()).max(KEPT_OUTCOMES).readonly(),
  /** The day of the last forecast, if that was wrong and no request has come since. */
  missedOn: z.iso.date().optional(),
});
export type RequestHistory = Readonly<z.output<typeof RequestHistory>>;

export const NO_HISTORY: RequestHistory = { days: [], outcomes: [] };

export interface RequestHistories {
  /** Returns those of all slots, without unreadable ones. */
  read(): Promise<ReadonlyMap<SlotName, RequestHistory>>;
  /** Never blocks and never throws. Undefined removes it. */
  write(slot: SlotName, history: RequestHistory | undefined): void;
}
