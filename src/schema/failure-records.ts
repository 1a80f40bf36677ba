/** The failures of slots as they outlive a controller. Statuses hold them, so whatever writes statuses writes them. */
import type { SlotName } from './words/names.ts';
import type { SlotStatus } from './status/slot-status.ts';

/** The part of a status that the next controller reads. */
export type RecordedFailures = Pick<SlotStatus, 'observedGeneration' | 'failures' | 'failedSpec'>;

/**
 * Reads back the one thing that is stored and decides something: failures, which the world cannot show again. Called when a controller begins to act. Rejects
 * if nothing can be read, and leaves out a slot whose record is missing or damaged. Both mean that its failures are counted from zero.
 */
export interface FailureRecords {
  read(signal: AbortSignal): Promise<ReadonlyMap<SlotName, RecordedFailures>>;
}
