/** Both ends of a translation at the client: the request body that it reads, and the answer that it writes. */
import type { AnswerHead, FormField, FormFile, TranslatableBody, TranslationEnd } from '../../providers/translation.ts';
import type { ClientAnswer } from '../client-answer.ts';
import { AnswerTail } from '../upstream/answer-tail.ts';
import type { ResponseHead } from '../upstream/decide/response-head.ts';
import type { AttemptRequest, TranslatedRequest } from '../exchange-deps.ts';
import { jsonExcess } from '../../schema/words/json-skipper.ts';
import { responseHeadOf } from './decide/translation-heads.ts';
import { messageOf } from '../../platform/error-text.ts';
import type { RequestBody } from '../body/request-body.ts';

type BodyRefusal = Extract<TranslationEnd, { kind: 'refuse' }>;
type ReadBody = (from: number, bytes: number) => Promise<Uint8Array | undefined>;

const DEFAULT_JSON_BYTES = 1024 * 1024;
/** All fields of a form together: prompts have up to 32 KiB, and a few fields hold small files as data URLs. */
const FIELD_BYTES = 1024 * 1024;

/** The answer of a translation: complete at once, or written in pieces. Throws if the translation breaks that order. */
export class TranslatedAnswer {
  ttftMs: number | undefined;
  /** Coarse milliseconds at which the client was last sent something; undefined before the answer has begun. */
  wroteAt: number | undefined;
  readonly #answer: ClientAnswer;
  readonly #tick: () => number;
  readonly #startedAt: number;
  readonly #tail: AnswerTail;
  #head: ResponseHead | undefined;

  constructor({ answer, deps, startedAt, asked }: AttemptRequest & Pick<TranslatedRequest, 'asked'>) {
    this.#tail = new AnswerTail(asked.capability);
    this.#answer = answer;
    this.#tick = deps.tick;
    this.#startedAt = startedAt;
  }

  /** `bytes` undefined: the length of the body is not known. */
  begin(head: AnswerHead, bytes?: number): void {
    if (this.#answer.started) throw new TypeError('The answer has already begun');
    const checked = responseHeadOf(head, bytes);
    this.ttftMs = performance.now() - this.#startedAt;
    this.wroteAt = this.#tick();
    this.#head = checked;
    this.#answer.begin(checked, this.ttftMs);
  }

  /** Resolves when the client has read enough. */
  async write(bytes: Buffer): Promise<void> {
    if (!this.#answer.started) throw new TypeError('The answer has not begun');
    if (bytes.length === 0) return;
    this.wroteAt = this.#tick();
    this.#tail.add(bytes, this.#head);
    if (this.#answer.write(bytes)) return;
    await new Promise<void>((resolve) => this.#answer.onceDrained(resolve));
    this.wroteAt = this.#tick();
  }

  end(last: Buffer): void {
    if (!this.#answer.started) throw new TypeError('The answer has not begun');
    this.#tail.add(last, this.#head);
    this.#answer.end(last);
  }

  counts() {
    return this.#tail.counts();
  }
}

/** Reads a complete request body. Undefined if it was released meanwhile. Rejects if the disk fails. */
export async function readTranslatableBody(
  body: Pick<RequestBody, 'received' | 'parts' | 'read'>,
  maxJsonBytes = DEFAULT_JSON_BYTES,
): Promise<TranslatableBody | BodyRefusal | undefined> {
  const read: ReadBody = (from, bytes) => body.read(from, bytes);
  if (body.parts !== undefined) return await readForm(read, body.parts);
  const large = `The body has more than ${maxJsonBytes} bytes, the limit of this path: send a smaller one`;
  if (body.received > maxJsonBytes) return { kind: 'refuse', code: 'request.too_large', message: large };
  const bytes = await readRange(read, 0, body.received);
  if (bytes === undefined) return undefined;
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
  const excess = jsonExcess(text);
  if (excess !== undefined) return { kind: 'refuse', code: 'request.invalid', message: excess };
  try {
    return { kind: 'json', text, value: JSON.parse(text) };
  } catch (error) {
    return { kind: 'refuse', code: 'request.invalid', message: `The body is not valid JSON: ${messageOf(error)}` };
  }
}

async function readForm(read: ReadBody, parts: NonNullable<RequestBody['parts']>): Promise<TranslatableBody | BodyRefusal | undefined> {
  const fields: FormField[] = [];
  const files: FormFile[] = [];
  let fieldBytes = 0;
  for (const { name, fileName, contentType, from, bytes } of parts) {
    if (fileName !== undefined) {
      files.push({ name, fileName, contentType, from, bytes });
      continue;
    }
    fieldBytes += bytes;
    if (fieldBytes > FIELD_BYTES) {
      const message = `The fields of the form have more than ${FIELD_BYTES} bytes together: send smaller ones`;
      return { kind: 'refuse', code: 'request.too_large', message, param: name };
    }
    const value = await readRange(read, from, bytes);
    if (value === undefined) return undefined;
    fields.push({ name, value: value.toString('utf8') });
  }
  return { kind: 'form', fields, files };
}

/** Undefined if the body ends or is released before. */
export async function readRange(read: ReadBody, from: number, bytes: number): Promise<Buffer | undefined> {
  const pieces: Uint8Array[] = [];
  for (let done = 0; done < bytes;) {
    const piece = await read(from + done, bytes - done);
    if (piece === undefined || piece.length === 0) return undefined;
    pieces.push(piece);
    done += piece.length;
  }
  return Buffer.concat(pieces);
}
