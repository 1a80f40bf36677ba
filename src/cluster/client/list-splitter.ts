/**
 * Splits the JSON text of a list into its items while it arrives, and a stream into lines. A server that answers from its
 * cache sends the whole list at once, which may be a hundred MB: it is never in memory as a whole. The splitter only tracks
 * strings and nesting; the parts are checked when they are parsed.
 */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;
const COMMA = 0x2c;
const SPACE = 0x20;
/** Nesting depth inside the array of items: the list itself is at 1. */
const ITEM_DEPTH = 2;
const BEGINS_ITEMS = /(?<!\\)"items"\s*:\s*\[$/;
/** Enough for the key and some spaces. */
const LONGEST_KEY = 64;

export interface ListLimits {
  readonly itemBytes: number;
  readonly envelopeBytes: number;
}

export function createListSplitter({ itemBytes, envelopeBytes }: ListLimits) {
  const envelope = createPart(envelopeBytes);
  const item = createPart(itemBytes);
  let depth = 0;
  let inString = false;
  let isEscaped = false;
  let inItems = false;
  let inItem = false;

  return {
    /** Returns the texts of complete items; undefined, and nothing more can be read, if a part is too large or not an object. */
    push(chunk: Uint8Array): string[] | undefined {
      const texts: string[] = [];
      let start = 0;
      for (let index = 0; index < chunk.length; index += 1) {
        const byte = chunk[index];
        if (inString) {
          if (isEscaped) isEscaped = false;
          else if (byte === BACKSLASH) isEscaped = true;
          else if (byte === QUOTE) inString = false;
        } else if (byte === OPENING_BRACE || byte === OPENING_BRACKET) {
          if (inItems && depth === ITEM_DEPTH) {
            [inItem, start] = [true, index];
          } else if (byte === OPENING_BRACKET && depth === ITEM_DEPTH - 1) {
            if (!envelope.add(chunk.subarray(start, index + 1))) return undefined;
            start = index + 1;
            inItems = BEGINS_ITEMS.test(envelope.end(LONGEST_KEY));
          }
          depth += 1;
        } else if (byte === CLOSING_BRACE || byte === CLOSING_BRACKET) {
          depth -= 1;
          if (inItem && depth === ITEM_DEPTH) {
            if (!item.add(chunk.subarray(start, index + 1))) return undefined;
            texts.push(item.take());
            [inItem, start] = [false, index + 1];
          } else if (inItems && depth < ITEM_DEPTH) [inItems, start] = [false, index];
        } else if (inItems && !inItem) {
          if (byte !== COMMA && (byte ?? 0) > SPACE) return undefined;
        } else if (byte === QUOTE) inString = true;
      }
      const rest = chunk.subarray(start);
      const isKept = inItem ? item.add(rest) : inItems || envelope.add(rest);
      return isKept ? texts : undefined;
    },
    /** Returns the text of the list without its items. Call it after everything was pushed. */
    envelope: (): string => envelope.take(),
  };
}

function createPart(limitBytes: number) {
  let chunks: Uint8Array[] = [];
  let bytes = 0;
  const text = (): string => Buffer.concat(chunks).toString('utf8');
  return {
    add(chunk: Uint8Array): boolean {
      bytes += chunk.length;
      if (chunk.length > 0) chunks.push(chunk);
      return bytes <= limitBytes;
    },
    end: (count: number): string => text().slice(-count),
    take(): string {
      const all = text();
      [chunks, bytes] = [[], 0];
      return all;
    },
  };
}

const NEWLINE = 0x0a;

/** Splits bytes into lines. Rejects long lines, unlike `platform/read-body.ts`: part of a document is useless. */
export function createLineBuffer(limitBytes: number) {
  let pending: Uint8Array[] = [];
  let pendingBytes = 0;

  function completeLine(end: Uint8Array): string {
    const whole = pending.length === 0 ? end : Buffer.concat([...pending, end]);
    [pending, pendingBytes] = [[], 0];
    return Buffer.from(whole.buffer, whole.byteOffset, whole.byteLength).toString('utf8');
  }

  return {
    /** Returns the complete lines, without newlines; undefined, and nothing more can be read, if a line exceeds the limit. */
    push(chunk: Uint8Array): string[] | undefined {
      const lines: string[] = [];
      let start = 0;
      for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
        if (pendingBytes + end - start > limitBytes) return undefined;
        lines.push(completeLine(chunk.subarray(start, end)));
        start = end + 1;
      }
      if (start < chunk.length) {
        pending.push(chunk.subarray(start));
        pendingBytes += chunk.length - start;
      }
      return pendingBytes > limitBytes ? undefined : lines;
    },
  };
}
