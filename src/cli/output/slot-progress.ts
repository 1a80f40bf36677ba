/** The status of a slot in one line, for tables, progress lines and waiting. Pure. */
import type { SlotAnswer } from '../connect/api-answers.ts';
import { secondsText, sizeText } from './output.ts';
import { withoutControls, type Progress } from './terminal.ts';

type Condition = SlotAnswer['status']['conditions'][number];

/** `message`: of `Stalled` if it is true, else of `Ready`. `upToDate`: undefined if the service does not report it. */
export function readinessOf(slot: SlotAnswer) {
  const ready = conditionOf(slot, 'Ready');
  const stalled = conditionOf(slot, 'Stalled');
  const isStalled = stalled?.status === 'True';
  const upToDate = conditionOf(slot, 'UpToDate')?.status;
  return { ready: ready?.status === 'True', upToDate, stalled: isStalled, message: textOf(isStalled ? stalled : ready) };
}

/** Message of the condition that matters most to a user. Empty if the slot is ready and nothing is in progress. */
export const noticeOf = (slot: SlotAnswer): string => textOf(findNotice(slot));

/** The same with its reason first, which still fits a narrow column: `CrashLoop: …`. */
export function reasonedNoticeOf(slot: SlotAnswer): string {
  const notice = findNotice(slot);
  return notice === undefined || notice.message === '' ? textOf(notice) : `${notice.reason}: ${notice.message}`;
}

function findNotice(slot: SlotAnswer): Condition | undefined {
  const [ready, stalled, reconciling, upToDate] = ['Ready', 'Stalled', 'Reconciling', 'UpToDate'].map((type) => conditionOf(slot, type));
  if (stalled?.status === 'True') return stalled;
  const isBusy = reconciling?.status === 'True';
  // Nothing is in progress, so this is the reason why the slot cannot be loaded.
  if (upToDate?.status === 'False' && !isBusy) return upToDate;
  if (ready?.status !== 'True') return ready;
  return isBusy ? reconciling : undefined;
}

export const conditionOf = ({ status }: SlotAnswer, type: string): Condition | undefined =>
  status.conditions.find((condition) => condition.type === type);

const textOf = (condition: Condition | undefined): string => (condition === undefined ? '' : condition.message || condition.reason);

/** `Pulling m.gguf, 1.2 GiB of 6.1 GiB (20 %), 40 MiB/s, 3m left`. Undefined while the slot pulls nothing. */
export function pullText({ status: { progress } }: SlotAnswer): string | undefined {
  if (progress === null || progress === undefined) return undefined;
  return `Pulling ${progress.what}, ${transferText(progress.done_bytes, progress.total_bytes)}${speedText(progress)}`;
}

/** `--watch`, and a verb that waits and writes to a pipe, print a line for every twentieth of a download. */
const STEPS = 20;

/** Changes with each step of a download. */
export function pullStep({ status: { progress } }: SlotAnswer): string | undefined {
  if (progress === null || progress === undefined) return undefined;
  return `Pulling ${progress.what}, ${Math.floor(STEPS * (shareOf(progress.done_bytes, progress.total_bytes) ?? 0))}`;
}

/** Progress line of a verb that waits for the slot. */
export function progressOf(slot: SlotAnswer): Progress {
  const { state, progress } = slot.status;
  const text = progressLine(slot);
  if (progress === null || progress === undefined) return { text, step: text };
  return { text, step: `${state} ${pullStep(slot) ?? ''}`, share: shareOf(progress.done_bytes, progress.total_bytes) };
}

/** `img: pulling sdxl-turbo, 1.2 GiB of 6.1 GiB (20 %)`. */
export function progressLine(slot: SlotAnswer): string {
  const { state, progress } = slot.status;
  const notice = noticeOf(slot);
  const detail =
    progress === null || progress === undefined
      ? notice && ` (${notice})`
      : ` ${progress.what}, ${transferText(progress.done_bytes, progress.total_bytes)}${speedText(progress)}`;
  return withoutControls(`${slot.name}: ${state}${detail}`);
}

/** `1.2 GiB of 6.1 GiB (20 %)`, or `1.2 GiB` if the total is unknown. */
export function transferText(done: number, total: number | null | undefined): string {
  const share = shareOf(done, total);
  return share === undefined ? sizeText(done) : `${sizeText(done)} of ${sizeText(total)} (${Math.floor(100 * share)} %)`;
}

/** `, 40 MiB/s, 3m left`; empty if the speed is unknown. */
export function speedText({ bytes_per_second: speed, seconds_left: left }: TransferSpeed): string {
  if (speed === null || speed === undefined) return '';
  return `, ${sizeText(speed)}/s${left === null || left === undefined ? '' : `, ${secondsText(left)} left`}`;
}

interface TransferSpeed {
  readonly bytes_per_second?: number | null | undefined;
  readonly seconds_left?: number | null | undefined;
}

/** Completed share, 0 to 1. Undefined if the total is unknown. */
export function shareOf(done: number, total: number | null | undefined): number | undefined {
  return total === null || total === undefined || total <= 0 ? undefined : done / total;
}
