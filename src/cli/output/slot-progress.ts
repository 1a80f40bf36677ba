/** Summarises the status of a slot for tables, progress lines and waiting. Pure. */
import type { SlotAnswer } from '../connect/api-answers.ts';
import { sizeText } from './quantities-text.ts';
import { withoutControls, type Progress } from './terminal.ts';

/** `message` is that of the condition `Stalled` if that is true, else of `Ready`. `upToDate` is undefined if the service does not say. */
export function readinessOf({ status }: SlotAnswer) {
  const find = (type: string) => status.conditions.find((condition) => condition.type === type);
  const ready = find('Ready');
  const stalled = find('Stalled');
  const isStalled = stalled?.status === 'True';
  const cause = isStalled ? stalled : ready;
  const upToDate = find('UpToDate')?.status;
  return { ready: ready?.status === 'True', upToDate, stalled: isStalled, message: cause?.message || (cause?.reason ?? '') };
}

/** What a user should know about the slot. Empty if it is ready and nothing is in progress. */
export function noticeOf(slot: SlotAnswer): string {
  const { ready, upToDate, stalled, message } = readinessOf(slot);
  const messageOf = (wanted: string, value: string): string | undefined =>
    slot.status.conditions.find(({ type, status }) => type === wanted && status === value)?.message;
  const reconciling = messageOf('Reconciling', 'True');
  if (stalled) return message;
  // Nothing is under way, so this is why the slot cannot be loaded.
  if (upToDate === 'False' && reconciling === undefined) return messageOf('UpToDate', 'False') ?? message;
  return ready ? (reconciling ?? '') : message;
}

/** What to show while a verb waits for the slot. */
export function progressOf(slot: SlotAnswer): Progress {
  const { state, progress } = slot.status;
  const text = progressLine(slot);
  if (progress === null || progress === undefined) return { text, step: text };
  return { text, step: `${state} ${progress.what}`, share: shareOf(progress.done_bytes, progress.total_bytes) };
}

/** `img: pulling sdxl-turbo, 1.2 GiB of 6.1 GiB (20 %)`. */
export function progressLine(slot: SlotAnswer): string {
  const { state, progress } = slot.status;
  const notice = noticeOf(slot);
  const detail =
    progress === null || progress === undefined
      ? notice && ` (${notice})`
      : ` ${progress.what}, ${transferText(progress.done_bytes, progress.total_bytes)}`;
  return withoutControls(`${slot.name}: ${state}${detail}`);
}

/** `1.2 GiB of 6.1 GiB (20 %)`, or `1.2 GiB` if the total is unknown. */
export function transferText(done: number, total: number | null | undefined): string {
  const share = shareOf(done, total);
  return share === undefined ? sizeText(done) : `${sizeText(done)} of ${sizeText(total)} (${Math.floor(100 * share)} %)`;
}

/** From 0 to 1. Undefined if the total is unknown. */
export function shareOf(done: number, total: number | null | undefined): number | undefined {
  return total === null || total === undefined || total <= 0 ? undefined : done / total;
}
