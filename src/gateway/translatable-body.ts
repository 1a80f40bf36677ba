/** Reads a complete request body into what a translation is given. */
import type { FormField, FormFile, TranslatableBody } from '../providers/translation.ts';
import { messageOf } from '../platform/error-text.ts';
import type { ErrorCode } from '../schema/words/error-codes.ts';
import type { RequestBody } from './body/request-body.ts';

export interface BodyRefusal {
  readonly kind: 'refuse';
  readonly code: ErrorCode;
  readonly message: string;
  readonly param?: string;
}

const DEFAULT_JSON_BYTES = 1024 * 1024;
/** All fields of a form together: prompts have up to 32 KiB, and a few fields hold small files as data URLs. */
const FIELD_BYTES = 1024 * 1024;

/** Returns undefined if the body was released meanwhile. Rejects if the disk fails. */
export async function readTranslatableBody(
  body: Pick<RequestBody, 'received' | 'parts' | 'read'>,
  maxJsonBytes = DEFAULT_JSON_BYTES,
): Promise<TranslatableBody | BodyRefusal | undefined> {
  if (body.parts !== undefined) return await readForm(body, body.parts);
  if (body.received > maxJsonBytes) {
    return { kind: 'refuse', code: 'request.too_large', message: `Send a smaller body: this path takes at most ${maxJsonBytes} bytes` };
  }
  const bytes = await readRange(body, 0, body.received);
  if (bytes === undefined) return undefined;
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
  try {
    return { kind: 'json', text, value: JSON.parse(text) };
  } catch (error) {
    return { kind: 'refuse', code: 'request.invalid', message: `Send valid JSON: ${messageOf(error)}` };
  }
}

async function readForm(
  body: Pick<RequestBody, 'read'>,
  parts: NonNullable<RequestBody['parts']>,
): Promise<TranslatableBody | BodyRefusal | undefined> {
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
      const message = `Send smaller fields: those of a form have at most ${FIELD_BYTES} bytes together`;
      return { kind: 'refuse', code: 'request.too_large', message, param: name };
    }
    const value = await readRange(body, from, bytes);
    if (value === undefined) return undefined;
    fields.push({ name, value: value.toString('utf8') });
  }
  return { kind: 'form', fields, files };
}

async function readRange(body: Pick<RequestBody, 'read'>, from: number, bytes: number): Promise<Buffer | undefined> {
  const pieces: Uint8Array[] = [];
  for (let read = 0; read < bytes;) {
    const piece = await body.read(from + read, bytes - read);
    if (piece === undefined || piece.length === 0) return undefined;
    pieces.push(piece);
    read += piece.length;
  }
  return Buffer.concat(pieces);
}
