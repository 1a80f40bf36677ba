/**
 * Events of the Wyoming protocol, with which Home Assistant talks to speech services: a line of JSON, maybe more JSON,
 * maybe bytes. https://github.com/OHF-Voice/wyoming (README, read in November 2026). Pure.
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

/** After a problem, nobody knows where the next event begins. */
type WyomingReading =
  | { readonly kind: 'event'; readonly event: WyomingEvent; readonly rest: Buffer }
  | { readonly kind: 'more' }
  | { readonly kind: 'problem'; readonly message: string };

/** Reads the first event of the bytes that have arrived. */
export function readWyoming(arrived: Buffer): WyomingReading {
  const lineEnd = arrived.subarray(0, MOST_LINE_BYTES).indexOf(NEWLINE);
  if (lineEnd === -1)
    return arrived.length < MOST_LINE_BYTES
      ? { kind: 'more' }
      : problem(`The line of an event has more than ${MOST_LINE_BYTES} bytes: send one line of JSON`);
  const header = Header.safeParse(parseBounded(arrived.toString('utf8', 0, lineEnd)));
  if (!header.success) return problem(`The line of an event is invalid: ${z.prettifyError(header.error).split('\n', 2).join(' ')}`);
  const { type, data, data_length: dataLength, payload_length: payloadLength } = header.data;
  const dataEnd = lineEnd + 1 + (dataLength ?? 0);
  const end = dataEnd + (payloadLength ?? 0);
  if (arrived.length < end) return { kind: 'more' };
  const more = Data.safeParse(dataEnd === lineEnd + 1 ? {} : parseBounded(arrived.toString('utf8', lineEnd + 1, dataEnd)));
  if (!more.success) return problem('The data of an event is not a JSON object: send UTF-8 of "data_length" bytes');
  return {
    kind: 'event',
    event: { type, data: { ...data, ...more.data }, payload: arrived.subarray(dataEnd, end) },
    rest: arrived.subarray(end),
  };
}

const problem = (message: string): WyomingReading => ({ kind: 'problem', message });
const parseBounded = (text: string): unknown => (jsonExcess(text) === undefined ? parseJson(text) : undefined);

/** The data follows the line, as Wyoming's own library writes it. */
export function encodeWyoming(type: string, data: object = {}, payload: Buffer = NOTHING): Buffer {
  const text = Buffer.from(Object.keys(data).length === 0 ? '' : JSON.stringify(data));
  const lengths = {
    ...(text.length === 0 ? {} : { data_length: text.length }),
    ...(payload.length === 0 ? {} : { payload_length: payload.length }),
  };
  return Buffer.concat([Buffer.from(`${JSON.stringify({ type, ...lengths })}\n`), text, payload]);
}
