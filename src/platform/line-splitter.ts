/** Splits a stream of bytes into lines of text. */
import { StringDecoder } from 'node:string_decoder';

/** A server that never ends its line must not fill our memory, so longer lines are cut into pieces. */
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
