/** Turns a request for a transcription into one for FastFlowLM, and its answer into OpenAI's. The server takes a file and nothing else, and answers with a text only. Pure. */
import { z } from 'zod';
import type { FormFile, TranslatableBody, TranslationEnd } from '../../translation.ts';
import { refuse, type Refusal } from './chat-request.ts';
import { unusable } from './npu-answers.ts';

type Shape = 'json' | 'text' | 'stream';

export type AskedText =
  | { readonly ok: true; readonly file: FormFile; readonly shape: Shape }
  | { readonly ok: false; readonly refusal: Refusal };

const Text = z.object({ text: z.string() });

/** `language`, `prompt` and `temperature` have no effect. */
export function askedText(body: TranslatableBody): AskedText {
  const file = body.kind === 'form' ? body.files.find(({ name }) => name === 'file') : undefined;
  if (body.kind !== 'form' || file === undefined) return { ok: false, refusal: refuse('Send a form with the recording as "file"', 'file') };
  const field = (name: string): string | undefined => body.fields.findLast((each) => each.name === name)?.value;
  const format = field('response_format') ?? 'json';
  if (format !== 'json' && format !== 'text') {
    const message = 'Set "response_format" to "json" or "text": the NPU server says no times, so it has no other formats';
    return { ok: false, refusal: refuse(message, 'response_format') };
  }
  return { ok: true, file, shape: field('stream') === 'true' ? 'stream' : format };
}

export function transcriptionAnswer(value: unknown, shape: Shape): TranslationEnd {
  const text = Text.safeParse(value).data?.text.trim();
  if (text === undefined) return unusable();
  if (shape === 'text') return { kind: 'answer', status: 200, contentType: 'text/plain; charset=utf-8', body: `${text}\n` };
  if (shape === 'json') return { kind: 'answer', status: 200, contentType: 'application/json', body: JSON.stringify({ text }) };
  const events = [
    { type: 'transcript.text.delta', delta: text },
    { type: 'transcript.text.done', text },
  ];
  const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  return { kind: 'answer', status: 200, contentType: 'text/event-stream', body };
}
