/**
 * Events of the Wyoming protocol, with which Home Assistant talks to speech services: a line of JSON, maybe more JSON, maybe bytes.
 * https://github.com/OHF-Voice/wyoming (README, read in November 2026). Pure, but a reader keeps what has arrived of an event.
 */
import { z } from 'zod';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import { jsonExcess } from '../../../schema/words/json-skipper.ts';

export interface WyomingEvent {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly payload: Buffer;
}

/** A line without end would fill the memory; headers of known clients have about 100 bytes. */
export const MOST_LINE_BYTES = 16 * 1024;
/** A text of `SVC_SPEECH_LIMIT` characters has less. */
export const MOST_DATA_BYTES = 256 * 1024;
/** Clients send parts of a tenth of a second. */
export const MOST_PAYLOAD_BYTES = 1024 * 1024;
const NEWLINE = 0x0a;
const NOTHING: Buffer = Buffer.alloc(0);

const Length = (most: number) => z.int().min(0).max(most).nullish();
const Data = z.record(z.string(), z.unknown());
const Header = z.looseObject({
  type: z.string().min(1).max(100),
  data: Data.nullish(),
  data_length: Length(MOST_DATA_BYTES),
  payload_length: Length(MOST_PAYLOAD_BYTES),
});

/** What can be read next; the problem is the end of the connection, since nobody knows where the next event begins. */
export type ReadWyoming =
  | { readonly kind: 'event'; readonly event: WyomingEvent }
  | { readonly kind: 'more' }
  | { readonly kind: 'problem'; readonly message: string };

export function createWyomingReader() {
  let arrived = NOTHING;
  let header: z.output<typeof Header> | undefined;

  function readHeader(): ReadWyoming | undefined {
    const end = arrived.subarray(0, MOST_LINE_BYTES).indexOf(NEWLINE);
    if (end === -1 && arrived.length < MOST_LINE_BYTES) return { kind: 'more' };
    if (end === -1)
      return { kind: 'problem', message: `The line of an event has more than ${MOST_LINE_BYTES} bytes: send one line of JSON` };
    const text = arrived.toString('utf8', 0, end);
    arrived = arrived.subarray(end + 1);
    const parsed = Header.safeParse(jsonExcess(text) === undefined ? parseJson(text) : undefined);
    if (!parsed.success)
      return { kind: 'problem', message: `The line of an event is invalid: ${z.prettifyError(parsed.error).split('\n', 2).join(' ')}` };
    header = parsed.data;
    return undefined;
  }

  return {
    add(bytes: Buffer): void {
      arrived = arrived.length === 0 ? bytes : Buffer.concat([arrived, bytes]);
    },
    waitingBytes: () => arrived.length,
    next(): ReadWyoming {
      const missing = header === undefined ? readHeader() : undefined;
      if (missing !== undefined || header === undefined) return missing ?? { kind: 'more' };
      const dataBytes = header.data_length ?? 0;
      const end = dataBytes + (header.payload_length ?? 0);
      if (arrived.length < end) return { kind: 'more' };
      const text = arrived.toString('utf8', 0, dataBytes);
      const more = Data.safeParse(dataBytes === 0 ? {} : jsonExcess(text) === undefined ? parseJson(text) : undefined);
      if (!more.success)
        return { kind: 'problem', message: 'The data of an event is not a JSON object: send UTF-8 of "data_length" bytes' };
      const event = { type: header.type, data: { ...header.data, ...more.data }, payload: arrived.subarray(dataBytes, end) };
      arrived = arrived.subarray(end);
      header = undefined;
      return { kind: 'event', event };
    },
  };
}

/** The data follows the line, as Wyoming's own library writes it. */
export function encodeWyoming(type: string, data: object = {}, payload: Buffer = NOTHING): Buffer {
  const text = Buffer.from(Object.keys(data).length === 0 ? '' : JSON.stringify(data));
  const lengths = {
    ...(text.length === 0 ? {} : { data_length: text.length }),
    ...(payload.length === 0 ? {} : { payload_length: payload.length }),
  };
  return Buffer.concat([Buffer.from(`${JSON.stringify({ type, ...lengths })}\n`), text, payload]);
}
