/** Reads bodies of limited size, and lines. */
import { StringDecoder } from 'node:string_decoder';

/** Returns the body as text. Throws if it is larger than `limitBytes`. */
export async function readBody(body: AsyncIterable<unknown>, limitBytes: number): Promise<string> {
  const bytes = await readBeginning(body, limitBytes + 1);
  if (bytes.length > limitBytes) throw new Error(`The response is larger than ${limitBytes} bytes`);
  return bytes.toString('utf8');
}

/** Returns the first `limitBytes` of the body at most, and closes the body after them. */
export async function readBeginning(body: AsyncIterable<unknown>, limitBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    if (!Buffer.isBuffer(chunk)) continue;
    chunks.push(chunk);
    size += chunk.length;
    if (size >= limitBytes) break;
  }
  return Buffer.concat(chunks).subarray(0, limitBytes);
}

/** Longer lines are cut into pieces, so that a server that never ends its line does not fill our memory. */
const LONGEST_LINE = 64 * 1024;

export function createLineSplitter(longestLine = LONGEST_LINE) {
  const decoder = new StringDecoder('utf8');
  let pending = '';
  const withoutReturn = (text: string): string => (text.endsWith('\r') ? text.slice(0, -1) : text);
  return {
    /** Returns the lines that this chunk completes. */
    push(chunk: Buffer): string[] {
      const lines = (pending + decoder.write(chunk)).split('\n');
      pending = lines.pop() ?? '';
      while (pending.length > longestLine) {
        lines.push(pending.slice(0, longestLine));
        pending = pending.slice(longestLine);
      }
      return lines.map(withoutReturn);
    },
    /** Returns the last line if it did not end with a newline. */
    end(): string | undefined {
      const rest = pending + decoder.end();
      pending = '';
      return rest === '' ? undefined : withoutReturn(rest);
    },
  };
}

/** Yields the lines of a stream, the last one also without a newline. */
export async function* splitLines(chunks: AsyncIterable<Buffer>, longestLine = LONGEST_LINE): AsyncGenerator<string> {
  const splitter = createLineSplitter(longestLine);
  for await (const chunk of chunks) yield* splitter.push(chunk);
  const rest = splitter.end();
  if (rest !== undefined) yield rest;
}

/** A string in UTF-8, or the same memory as an array of bytes, which must not change any more. */
export function bufferOf(bytes: string | Uint8Array): Buffer {
  return typeof bytes === 'string' ? Buffer.from(bytes) : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
