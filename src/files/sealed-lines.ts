/**
 * Files of lines that only the owner of a key can read. A reader notices if a line was altered, moved, left out, or cut
 * off at the end.
 *
 *   first line    JSON in clear: the format, and what the file is
 *   others        "line" or "end", and AES-256-GCM in base64: nonce = number of the line, associated data = the first
 *                 line and the word
 *   end           how many lines there are, and why there are no more
 *
 * A key is used for one file, so that a counter is a nonce that never repeats (NIST SP 800-38D, 8.2.1).
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { parseJson } from '../platform/decide/parse-json.ts';

type LineKind = 'line' | 'end';

const FORMAT = 1;
const CIPHER = 'aes-256-gcm';
const [KEY_BYTES, NONCE_BYTES, TAG_BYTES] = [32, 12, 16];
const Head = z.object({ format: z.int().min(1) });
const End = z.object({ why: z.string() });

export const SEAL_KEY = /^[\w-]{43}$/;

function nonceOf(number: number): Buffer {
  const nonce = Buffer.alloc(NONCE_BYTES);
  nonce.writeUInt32BE(number, NONCE_BYTES - 4);
  return nonce;
}

/** `key` opens what is sealed. It is not in the file, and is overwritten here with the end. */
export function createSeal(facts: object) {
  const secret = randomBytes(KEY_BYTES);
  const head = JSON.stringify({ format: FORMAT, ...facts });
  let lines = 0;

  function sealed(kind: LineKind, text: string): string {
    const cipher = createCipheriv(CIPHER, secret, nonceOf(lines)).setAAD(Buffer.from(head + kind));
    lines += 1;
    const bytes = Buffer.concat([cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return `${kind} ${bytes.toString('base64')}\n`;
  }

  return {
    key: secret.toString('base64url'),
    /** The first line. */
    head: `${head}\n`,
    seal: (text: string): string => sealed('line', text),
    /** Nothing can be sealed after this. */
    end(why: string): string {
      const line = sealed('end', JSON.stringify({ lines, why }));
      secret.fill(0);
      return line;
    },
  };
}

export interface Unsealed {
  readonly lines: readonly string[];
  /** Why the file was complete; undefined if it was not. */
  readonly why: string | undefined;
  /** What is wrong, behind the lines that are right. */
  readonly problem: string | undefined;
}

/** `key`: matches `SEAL_KEY`. */
export function openSealed(text: string, key: string): Unsealed {
  const [head = '', ...rest] = text.split('\n');
  const secret = Buffer.from(key, 'base64url');
  const lines: string[] = [];
  const stopped = (problem: string): Unsealed => ({ lines, why: undefined, problem });
  const { format } = Head.safeParse(parseJson(head)).data ?? {};
  if (format === undefined) return stopped('It is no capture: its first line is damaged');
  if (format > FORMAT) return stopped('A newer version has written it: use "svcctl" of that version');
  for (const [index, line] of rest.entries()) {
    if (line === '' && index === rest.length - 1) break;
    const [kind = '', sealed = ''] = line.split(' ');
    const isKind = kind === 'line' || kind === 'end';
    const opened = isKind ? unseal(secret, { data: head + kind, number: lines.length, bytes: Buffer.from(sealed, 'base64') }) : undefined;
    if (opened === undefined)
      return stopped(
        lines.length === 0
          ? 'It cannot be decrypted: the key is of another capture, or the file was altered'
          : `Its record ${lines.length + 1} was altered, moved, left out or cut`,
      );
    if (kind === 'line') {
      lines.push(opened);
      continue;
    }
    const isLast = rest.slice(index + 1).join('') === '';
    return { lines, why: End.safeParse(parseJson(opened)).data?.why, problem: isLast ? undefined : 'Something was added behind its end' };
  }
  return stopped('It has no end: the capture still runs, the service was killed or could not write, or the file was cut');
}

type SealedLine = Readonly<{ data: string; number: number; bytes: Buffer }>;

function unseal(secret: Buffer, { data, number, bytes }: SealedLine): string | undefined {
  if (bytes.length < TAG_BYTES) return undefined;
  const decipher = createDecipheriv(CIPHER, secret, nonceOf(number), { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(data))
    .setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]).toString('utf8');
  } catch {
    return undefined;
  }
}
