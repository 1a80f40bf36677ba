/**
 * Splits the JSON text of a list into its items while it arrives, and a watch into lines. A cache answers with a whole
 * list at once, maybe a hundred MB: neither its text nor the parsed list is ever in memory as a whole.
 */
import { jsonFields, JsonScanner, type JsonFilter } from '../../schema/words/json-scanner.ts';

export interface ListLimits {
  readonly itemBytes: number;
  /** For everything outside of the items. */
  readonly envelopeBytes: number;
}

const LIST: JsonFilter<'list' | 'item'> = { fields: jsonFields({ items: { tag: 'list', items: { tag: 'item' } } }) };

export function createListSplitter({ itemBytes, envelopeBytes }: ListLimits) {
  const envelope = createPart(envelopeBytes);
  const item = createPart(itemBytes);
  let texts: string[] = [];
  let chunk: Buffer = Buffer.alloc(0);
  /** Offset of the chunk in the text. */
  let offset = 0;
  /** Index in the chunk of the first byte that belongs to no part yet. */
  let start = 0;
  let place: 'envelope' | 'items' | 'item' = 'envelope';
  let hasFailed = false;

  function addTo(part: ReturnType<typeof createPart>, end: number): void {
    if (!part.add(chunk.subarray(start, end))) hasFailed = true;
    start = end;
  }

  const refuse = (tag: 'list' | 'item'): void => void (hasFailed ||= tag === 'item');
  const scanner = new JsonScanner(LIST, {
    onString: refuse,
    onScalar: refuse,
    onOpen(tag, isArray, from) {
      if (tag === 'item') [place, start] = ['item', from - offset];
      else if (isArray) {
        addTo(envelope, from - offset + 1);
        place = 'items';
      }
    },
    onClose(tag, to) {
      if (tag === 'item') {
        addTo(item, to - offset);
        texts.push(item.take());
        place = 'items';
      } else if (place === 'items') [place, start] = ['envelope', to - offset - 1];
    },
  });

  return {
    /** The texts of complete items; undefined, and nothing more is read, if a part is too large or no object. */
    push(bytes: Uint8Array): string[] | undefined {
      texts = [];
      chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
      start = 0;
      scanner.feed(chunk);
      if (place !== 'items') addTo(place === 'item' ? item : envelope, chunk.length);
      offset += chunk.length;
      return hasFailed || scanner.status === 'invalid' ? undefined : texts;
    },
    envelope: (): string => envelope.take(),
  };
}

function createPart(limitBytes: number) {
  let chunks: Uint8Array[] = [];
  let bytes = 0;
  return {
    add(chunk: Uint8Array): boolean {
      bytes += chunk.length;
      if (chunk.length > 0) chunks.push(chunk);
      return bytes <= limitBytes;
    },
    take(): string {
      const [only = new Uint8Array(0)] = chunks;
      const whole = chunks.length > 1 ? Buffer.concat(chunks) : only;
      [chunks, bytes] = [[], 0];
      return Buffer.from(whole.buffer, whole.byteOffset, whole.byteLength).toString('utf8');
    },
  };
}

const NEWLINE = 0x0a;

export function createLineBuffer(limitBytes: number) {
  const line = createPart(limitBytes);
  return {
    /** Complete lines without newlines; undefined if a line exceeds the limit: then nothing more can be read. */
    push(chunk: Uint8Array): string[] | undefined {
      const lines: string[] = [];
      let start = 0;
      for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
        if (!line.add(chunk.subarray(start, end))) return undefined;
        lines.push(line.take());
        start = end + 1;
      }
      return line.add(chunk.subarray(start)) ? lines : undefined;
    },
  };
}
