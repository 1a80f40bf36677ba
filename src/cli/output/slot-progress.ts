/** What a slot's status says, for tables, progress lines and waiting. Pure. */
import type { SlotShape } from '../connect/api-shapes.ts';
import { sizeText } from './quantities-text.ts';
import { harmless, type Progress } from './terminal.ts';

export interface Readiness {
  readonly ready: boolean;
  readonly stalled: boolean;
  readonly reason: string;
  readonly message: string;
}

export function readyOf({ status }: SlotShape): Readiness {
  const find = (type: string) => status.conditions.find((condition) => condition.type === type);
  const ready = find('Ready');
  const stalled = find('Stalled');
  const isStalled = stalled?.status === 'True';
  const told = isStalled ? stalled : ready;
  return {
    ready: ready?.status === 'True',
    stalled: isStalled,
    reason: told?.reason ?? '',
    message: told === undefined ? '' : told.message === '' ? told.reason : told.message,
  };
}

/** What a person should read of it; empty where it is ready and nothing is under way. */
export function noticeOf(slot: SlotShape): string {
  const { ready, stalled, message } = readyOf(slot);
  if (!ready || stalled) return message;
  const underWay = slot.status.conditions.find(({ type, status }) => type === 'Reconciling' && status === 'True');
  return underWay?.message ?? '';
}

/** The line to show while one waits for a slot. */
export function progressOf(slot: SlotShape): Progress {
  const { state, progress } = slot.status;
  const total = progress?.total_bytes ?? 0;
  const share = progress === null || progress === undefined || total <= 0 ? undefined : progress.done_bytes / total;
  return { text: progressLine(slot), step: `${state} ${progress?.what ?? readyOf(slot).message}`, share };
}

/** `img: pulling sdxl-turbo, 1.2 GiB of 6.1 GiB (20 %)`. */
export function progressLine(slot: SlotShape): string {
  const { status, name } = slot;
  const { progress } = status;
  if (progress !== null && progress !== undefined) return `${name}: ${status.state} ${harmless(progress.what)}, ${share(progress)}`;
  const { ready, message } = readyOf(slot);
  return ready || message === '' ? `${name}: ${status.state}` : `${name}: ${status.state} (${harmless(message)})`;
}

function share(progress: { readonly done_bytes: number; readonly total_bytes?: number | null | undefined }): string {
  const { done_bytes: done, total_bytes: total } = progress;
  if (total === null || total === undefined || total <= 0) return sizeText(done);
  return `${sizeText(done)} of ${sizeText(total)} (${Math.floor((100 * done) / total)} %)`;
}
