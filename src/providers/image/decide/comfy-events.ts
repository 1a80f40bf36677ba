/**
 * Parses what ComfyUI says over its WebSocket about one job. `/history` decides what became of the job: an event only says when to ask, and how far the job is. Pure.
 *
 * A server sends previews to a client that has not announced what it supports as two numbers of 32 bits, the kind of the event and the format of the image, and then the image
 * (`server.py` of ComfyUI 0.3.64).
 */
import { z } from 'zod';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import type { RequestProgress, SocketMessage } from '../../translation.ts';
import { beginsAs, endsAs } from './image-bytes.ts';

export type ComfyEvent =
  | { readonly kind: 'progress'; readonly progress: RequestProgress }
  | { readonly kind: 'preview'; readonly preview: Preview }
  /** The job has left the queue, and is in history. */
  | { readonly kind: 'ended' }
  /** The server is about to end the job. */
  | { readonly kind: 'ending' }
  /** About something else. */
  | { readonly kind: 'other' };

/** What the image looks like so far, at most 512 pixels wide and high. Of several images, only of the first. */
export interface Preview {
  readonly format: 'jpeg' | 'png';
  readonly bytes: Uint8Array;
}

const PREVIEW_IMAGE = 1;
const PREVIEW_FORMATS: ReadonlyMap<number, Preview['format']> = new Map([
  [1, 'jpeg'],
  [2, 'png'],
]);
const HEAD_BYTES = 8;
/** Steps: beyond what any sampler makes. */
const MOST_STEPS = 1_000_000;

const Event = z.object({ type: z.string(), data: z.looseObject({ prompt_id: z.string() }) });
const Executing = z.object({ node: z.null() });
const Progress = z.object({ value: z.number().min(0), max: z.number().min(1).max(MOST_STEPS) });
const ENDINGS: ReadonlySet<string> = new Set(['execution_success', 'execution_error', 'execution_interrupted']);

const OTHER: ComfyEvent = { kind: 'other' };

/** `id`: of the job. What is about other jobs is `other`. */
export function parseEvent(message: Extract<SocketMessage, { kind: 'text' | 'binary' }>, id: string): ComfyEvent {
  return message.kind === 'binary' ? parsePreview(message.bytes) : parseText(message.text, id);
}

function parseText(text: string, id: string): ComfyEvent {
  // Each change of the queue is sent to every client, so most texts are about no job.
  if (!text.includes(id)) return OTHER;
  const { type, data } = Event.safeParse(parseJson(text)).data ?? {};
  if (type === undefined || data?.prompt_id !== id) return OTHER;
  if (ENDINGS.has(type)) return { kind: 'ending' };
  if (type === 'executing') return Executing.safeParse(data).success ? { kind: 'ended' } : OTHER;
  const progress = type === 'progress' ? Progress.safeParse(data).data : undefined;
  if (progress === undefined) return OTHER;
  const total = Math.round(progress.max);
  return { kind: 'progress', progress: { done: Math.min(total, Math.floor(progress.value)), total } };
}

function parsePreview(bytes: Uint8Array): ComfyEvent {
  if (bytes.length <= HEAD_BYTES) return OTHER;
  const head = new DataView(bytes.buffer, bytes.byteOffset, HEAD_BYTES);
  const format = PREVIEW_FORMATS.get(head.getUint32(4));
  if (head.getUint32(0) !== PREVIEW_IMAGE || format === undefined) return OTHER;
  const image = bytes.subarray(HEAD_BYTES);
  return beginsAs(format, image) && endsAs(format, image) ? { kind: 'preview', preview: { format, bytes: image } } : OTHER;
}

/**
 * Whether a preview is one that the client is sent: `wanted` previews are spread evenly over the steps, and none is sent for the last step, as the image itself follows.
 * `sent`: how many have been sent.
 */
export function isPartialDue({ done, total }: RequestProgress, wanted: number, sent: number): boolean {
  return sent < wanted && done < total && done * (wanted + 1) >= (sent + 1) * total;
}
