/** Bytes to lines of text. */
import { StringDecoder } from 'node:string_decoder';

/** A server that never ends its line must not fill our memory: such a line is cut. */
const LONGEST_LINE = 64 * 1024;

export interface LineSplitter {
  push(chunk: Buffer): string[];
  /** What is left without a newline, if anything. */
  end(): string | undefined;
}

export function createLineSplitter(): LineSplitter {
  const decoder = new StringDecoder('utf8');
  let pending = '';
  const cut = (text: string): string => (text.endsWith('\r') ? text.slice(0, -1) : text);
  return {
    push(chunk) {
      const lines = (pending + decoder.write(chunk)).split('\n');
      pending = lines.pop() ?? '';
      while (pending.length > LONGEST_LINE) {
        lines.push(pending.slice(0, LONGEST_LINE));
        pending = pending.slice(LONGEST_LINE);
      }
      return lines.map(cut);
    },
    end() {
      const rest = pending + decoder.end();
      pending = '';
      return rest === '' ? undefined : cut(rest);
    },
  };
}
