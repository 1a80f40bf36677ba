/** What a client reads while its request waits: the state of the slot, and its place among those that wait. Pure. */
import type { RoutedSlot } from '../../../reconciler/board.ts';

/** Among the requests that wait for the same slot in this process; `position` counts from 1. */
export interface QueuePlace {
  readonly position: number;
  readonly waiting: number;
  /** How long it will probably wait for its turn at an open slot. */
  readonly waitMs?: number | undefined;
}

type Progress = NonNullable<NonNullable<RoutedSlot['status']>['progress']>;

/** One line, such as `svc pulling 43 %, about 12 s left, position 2 of 5`. `slot` undefined: it is not known yet. */
export function waitText(slot: Pick<RoutedSlot, 'admission' | 'status'> | undefined, { position, waiting, waitMs }: QueuePlace): string {
  const { state = 'waiting', progress } = slot?.status ?? {};
  const because = slot?.admission.kind === 'park' ? slot.admission.because : undefined;
  const parts = [
    `${state}${percentOf(progress)}`,
    ...timeLeft(progress, slot?.admission.kind === 'open' ? waitMs : undefined),
    `position ${position} of ${waiting}`,
  ];
  // A line end in a comment would begin a field of an event.
  return `svc ${parts.join(', ')}${because === undefined ? '' : `: ${because}`}`.replaceAll(/\s+/g, ' ');
}

function percentOf({ doneBytes = 0, totalBytes = 0 }: Partial<Progress> = {}): string {
  return totalBytes > 0 ? ` ${Math.min(100, Math.floor((100 * doneBytes) / totalBytes))} %` : '';
}

function timeLeft({ doneBytes = 0, totalBytes = 0, bytesPerSecond = 0 }: Partial<Progress> = {}, waitMs?: number): readonly string[] {
  const isKnown = totalBytes > doneBytes && bytesPerSecond > 0;
  if (!isKnown && waitMs === undefined) return [];
  const seconds = Math.ceil(isKnown ? (totalBytes - doneBytes) / bytesPerSecond : (waitMs ?? 0) / 1000);
  if (seconds <= 90) return [`about ${seconds} s left`];
  const minutes = Math.round(seconds / 60);
  return [minutes <= 90 ? `about ${minutes} min left` : `about ${Math.round(minutes / 60)} h left`];
}
