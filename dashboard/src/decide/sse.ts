/** Server-sent events, as pieces of text become events. https://html.spec.whatwg.org/multipage/server-sent-events.html Pure. */

export interface ServerEvent {
  readonly event: string;
  readonly data: string;
  /** The last id that the stream has sent, also with an earlier event. */
  readonly id: string;
}

/** What of a stream has not yet become an event. */
export interface SseRest {
  readonly text: string;
  readonly id: string;
}

export const SSE_BEGIN: SseRest = { text: '', id: '' };

/** Takes the next piece of a stream. Returns the events that are complete now, and the rest for the next call. */
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
