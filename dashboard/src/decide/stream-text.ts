/** Text that arrives in pieces: server-sent events, and the lines of a log. Pure. */

export interface ServerEvent {
  readonly event: string;
  readonly data: string;
  /** The last id of the stream, possibly sent with an earlier event. */
  readonly id: string;
}

/** The part of a stream that is not yet a complete event. */
export interface SseRest {
  readonly text: string;
  readonly id: string;
}

export const SSE_BEGIN: SseRest = { text: '', id: '' };

/**
 * Returns the events that `piece` completes, and the rest for the next call.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
export function readEvents(rest: SseRest, piece: string): { readonly events: readonly ServerEvent[]; readonly rest: SseRest } {
  const joined = rest.text + piece;
  // A "\r" at the end may be half of a "\r\n".
  const held = joined.endsWith('\r') ? '\r' : '';
  const blocks = joined
    .slice(0, joined.length - held.length)
    .replace(/\r\n?/g, '\n')
    .split('\n\n');
  const text = (blocks.pop() ?? '') + held;
  const events: ServerEvent[] = [];
  let { id } = rest;
  for (const block of blocks) {
    const fields = block.split('\n').map(field);
    id = fields.findLast(([name]) => name === 'id')?.[1] ?? id;
    const data = fields.filter(([name]) => name === 'data').map(([, value]) => value);
    if (data.length > 0) events.push({ event: fields.findLast(([name]) => name === 'event')?.[1] ?? 'message', data: data.join('\n'), id });
  }
  return { events, rest: { text, id } };
}

function field(line: string): readonly [string, string] {
  const colon = line.indexOf(':');
  if (colon < 0) return [line, ''];
  const value = line.slice(colon + 1);
  return [line.slice(0, colon), value.startsWith(' ') ? value.slice(1) : value];
}

export interface LogLines {
  readonly lines: readonly string[];
  /** The last line, without its line break yet. */
  readonly open: string;
}

export const NO_LINES: LogLines = { lines: [], open: '' };
const MAX_LINES = 5000;

export function appendText({ lines, open }: LogLines, text: string): LogLines {
  const parts = (open + text).split('\n');
  const rest = parts.pop() ?? '';
  return { lines: [...lines, ...parts].slice(-MAX_LINES), open: rest };
}

/** Indices of the lines that contain the text, in any case. */
export function matchesOf(lines: readonly string[], search: string): readonly number[] {
  const wanted = search.trim().toLowerCase();
  return wanted === '' ? [] : lines.flatMap((line, index) => (line.toLowerCase().includes(wanted) ? [index] : []));
}
