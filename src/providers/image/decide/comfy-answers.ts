/** Parses ComfyUI's responses and events. Untrusted: strings are cut, file names only used in requests. Pure. */
import { z } from 'zod';
import { hideHostText } from '../../../schema/words/failure.ts';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import type { UpstreamAnswer, RequestProgress, SocketMessage } from '../../translation.ts';
import { beginsAs, endsAs } from './image-bytes.ts';

export type SavedImage = { readonly filename: string; readonly subfolder: string; readonly type: 'output' | 'temp' };

export type JobOutcome =
  | { readonly kind: 'done'; readonly images: readonly SavedImage[] }
  | { readonly kind: 'interrupted' }
  | { readonly kind: 'failed'; readonly error: ExecutionError }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'broken' };

export type ExecutionError = { readonly nodeType: string; readonly exceptionType: string; readonly message: string };

export interface ValidationError {
  readonly type: string;
  readonly message: string;
  readonly input: string | undefined;
  readonly nodeType: string | undefined;
  readonly node?: string | undefined;
}

const SHOWN = 300;

const Text = z.string().catch('');
const Image = z.object({
  filename: z.string().min(1).max(500),
  subfolder: z.string().max(500).catch(''),
  type: z.enum(['output', 'temp']),
});
const Output = z.object({ images: z.array(Image).max(100).optional() });
const Entry = z.object({
  outputs: z.record(z.string(), z.unknown()).catch({}),
  status: z.object({ status_str: Text, messages: z.array(z.tuple([z.string(), z.unknown()])).catch([]) }).optional(),
});
const History = z.record(z.string(), z.unknown());
const ExecutionFacts = z.object({ node_type: Text, exception_type: Text, exception_message: Text });
const Queue = z.object({ queue_running: z.array(z.unknown()), queue_pending: z.array(z.unknown()) });
const Item = z.tuple([z.unknown(), z.string()], z.unknown());
const Problem = z.object({ type: Text, message: Text, details: Text, extra_info: z.unknown() });
const Refusal = z.object({
  error: z.union([Problem, z.string()]),
  node_errors: z.record(z.string(), z.object({ class_type: Text, errors: z.array(Problem).catch([]) })).catch({}),
});
const InputInfo = z.object({ input_name: z.string() });

export function parseHistory({ status, body }: UpstreamAnswer, id: string, saveNode: string): JobOutcome {
  const history = status === 200 ? History.safeParse(jsonOf(body)).data : undefined;
  if (history === undefined) return { kind: 'broken' };
  if (!Object.hasOwn(history, id)) return { kind: 'unknown' };
  const entry = Entry.safeParse(history[id]).data;
  if (entry === undefined) return { kind: 'broken' };
  const messages = entry.status?.messages ?? [];
  const failure = messages.findLast(([type]) => type === 'execution_error');
  if (failure !== undefined) return { kind: 'failed', error: executionErrorOf(failure[1]) };
  if (messages.some(([type]) => type === 'execution_interrupted')) return { kind: 'interrupted' };
  if (entry.status?.status_str === 'error') return { kind: 'failed', error: executionErrorOf(undefined) };
  const output = Output.safeParse(entry.outputs[saveNode]).data;
  return output?.images === undefined || output.images.length === 0 ? { kind: 'broken' } : { kind: 'done', images: output.images };
}

function executionErrorOf(value: unknown): ExecutionError {
  const { node_type: node = '', exception_type: type = '', exception_message: text = '' } = ExecutionFacts.safeParse(value).data ?? {};
  return { nodeType: shown(node), exceptionType: shown(type), message: shown(text) };
}

/** Undefined if the response to `GET /queue` does not say. */
export function isQueued({ status, body }: UpstreamAnswer, id: string): boolean | undefined {
  const queue = status === 200 ? Queue.safeParse(jsonOf(body)).data : undefined;
  return queue === undefined
    ? undefined
    : [...queue.queue_running, ...queue.queue_pending].some((item) => Item.safeParse(item).data?.[1] === id);
}

export function parseRefusal({ body }: UpstreamAnswer): ValidationError | undefined {
  const refusal = Refusal.safeParse(jsonOf(body)).data;
  if (refusal === undefined) return undefined;
  const { error } = refusal;
  for (const [node, { class_type: nodeType, errors }] of Object.entries(refusal.node_errors)) {
    const [first] = errors;
    if (first === undefined) continue;
    const message = shown([first.message, first.details].filter((text) => text !== '').join(': '));
    return { type: first.type, message, input: InputInfo.safeParse(first.extra_info).data?.input_name, nodeType: shown(nodeType), node };
  }
  if (typeof error === 'string') return { type: '', message: shown(error), input: undefined, nodeType: undefined };
  const message = shown([error.message, error.details].filter((text) => text !== '').join(': '));
  return { type: error.type, message, input: undefined, nodeType: undefined };
}

export const parseQueued = ({ status, body }: UpstreamAnswer): boolean =>
  status === 200 && z.object({ prompt_id: z.string() }).safeParse(jsonOf(body)).success;
export const parseUploaded = ({ status, body }: UpstreamAnswer): { readonly name: string; readonly subfolder: string } | undefined =>
  status === 200 ? z.object({ name: z.string(), subfolder: z.string() }).safeParse(jsonOf(body)).data : undefined;
const jsonOf = (body: Uint8Array): unknown => parseJson(new TextDecoder().decode(body));
/** One line without a period, and without paths of the machine that draws. */
const shown = (text: string): string => hideHostText(text).replace(/\s+/g, ' ').trim().slice(0, SHOWN).replace(/\.+$/, '');

type ComfyEvent =
  | { readonly kind: 'progress'; readonly progress: RequestProgress }
  | { readonly kind: 'preview'; readonly preview: Preview }
  | { readonly kind: 'ended' }
  | { readonly kind: 'ending' }
  | { readonly kind: 'other' };

/** An image of at most 512 pixels per side, behind two 32-bit numbers (`server.py`). Of several images, the first. */
export type Preview = { readonly format: 'jpeg' | 'png'; readonly bytes: Uint8Array };

const PREVIEW_IMAGE = 1;
const PREVIEW_FORMATS: Readonly<Record<number, Preview['format']>> = { 1: 'jpeg', 2: 'png' };
const HEAD_BYTES = 8;
const MOST_STEPS = 1_000_000;

const Event = z.object({ type: z.string(), data: z.looseObject({ prompt_id: z.string() }) });
const Executing = z.object({ node: z.null() });
const Progress = z.object({ value: z.number().min(0), max: z.number().min(1).max(MOST_STEPS) });
const ENDINGS: ReadonlySet<string> = new Set(['execution_success', 'execution_error', 'execution_interrupted']);

const OTHER: ComfyEvent = { kind: 'other' };

/** Events of other jobs are `other`. */
export const parseEvent = (message: Extract<SocketMessage, { kind: 'text' | 'binary' }>, id: string): ComfyEvent =>
  message.kind === 'binary' ? parsePreview(message.bytes) : parseText(message.text, id);

function parseText(text: string, id: string): ComfyEvent {
  // Each change of the queue is sent to every client: most messages are about no job.
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
  const format = PREVIEW_FORMATS[head.getUint32(4)];
  if (head.getUint32(0) !== PREVIEW_IMAGE || format === undefined) return OTHER;
  const image = bytes.subarray(HEAD_BYTES);
  return beginsAs(format, image) && endsAs(format, image) ? { kind: 'preview', preview: { format, bytes: image } } : OTHER;
}

export const isPartialDue = ({ done, total }: RequestProgress, wanted: number, sent: number): boolean =>
  sent < wanted && done < total && done * (wanted + 1) >= (sent + 1) * total;
