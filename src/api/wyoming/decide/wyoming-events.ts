/**
 * The Wyoming protocol, with which Home Assistant talks to speech services. Its events are a line of JSON, maybe more
 * JSON, maybe bytes; `info` describes what the slots offer. Pure.
 * https://github.com/OHF-Voice/wyoming (README, read in November 2026)
 */
import { z } from 'zod';
import { DEFAULT_SLOT_OF_CAPABILITY } from '../../../gateway/route/decide/inference-paths.ts';
import type { RoutedSlot, RoutedView } from '../../../reconciler/board.ts';
import type { Capability } from '../../../schema/slot/provider-kinds.ts';
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

/**
 * Languages of Whisper (https://github.com/openai/whisper/blob/main/whisper/tokenizer.py) stand for those of a model
 * that does not say its own: Home Assistant offers no service without a language.
 */
const LANGUAGES: readonly string[] = (
  'en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk br eu is ' +
  'hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt ha ba su yue'
).split(' ');
const ATTRIBUTION = { name: 'svc', url: '' };

export interface WyomingVoice {
  readonly name: string;
  readonly slot: string;
  /** The voice in requests; undefined: the default one of the slot. */
  readonly voice: string | undefined;
  readonly languages: readonly string[];
}

/** Voices of all slots that speak, the default one first. A slot with unknown voices is a voice with its name. */
export function wyomingVoices(view: RoutedView): readonly WyomingVoice[] {
  const known = new Map<string, WyomingVoice>();
  for (const { name: slot, voices = [] } of slotsFor('speech', view)) {
    const own = voices.map(({ id, language }) => ({
      name: id,
      slot,
      voice: id,
      languages: language === undefined ? LANGUAGES : [tagOf(language)],
    }));
    for (const voice of own.length === 0 ? [{ name: slot, slot, voice: undefined, languages: LANGUAGES }] : own)
      if (!known.has(voice.name)) known.set(voice.name, voice);
  }
  return [...known.values()];
}

export function describeServices(view: RoutedView, version: string): object {
  const artifact = (name: string, description: string) => ({ name, description, attribution: ATTRIBUTION, installed: true, version });
  const models = slotsFor('transcription', view).map(({ name, spec }) => ({ ...artifact(name, spec.model.default), languages: LANGUAGES }));
  const voices = wyomingVoices(view).map(({ name, slot, languages }) => ({
    ...artifact(name, `${name} (${slot})`),
    languages,
    speakers: null,
  }));
  return {
    asr: models.length === 0 ? [] : [{ ...artifact('svc', 'Speech to text'), models, supports_transcript_streaming: false }],
    tts: voices.length === 0 ? [] : [{ ...artifact('svc', 'Text to speech'), voices, supports_synthesize_streaming: true }],
    handle: [],
    intent: [],
    wake: [],
    mic: [],
    snd: [],
  };
}

function slotsFor(capability: Capability, view: RoutedView): readonly RoutedSlot[] {
  const slots = [...view.slots.values()].filter(
    ({ capabilities, admission }) =>
      capabilities.includes(capability) && !(admission.kind === 'refuse' && admission.code === 'slot.disabled'),
  );
  const isDefault = ({ name }: RoutedSlot): boolean => name === DEFAULT_SLOT_OF_CAPABILITY[capability];
  return slots.toSorted((a, b) => Number(isDefault(b)) - Number(isDefault(a)));
}

/** `en-us` → `en-US`, as Home Assistant writes languages. */
const tagOf = (language: string): string => language.replace(/-([a-z]{2})$/, (_, region: string) => `-${region.toUpperCase()}`);

/** The part of a text that arrives in pieces that can be spoken now: its whole sentences. */
export function takeSentences(text: string): { readonly ready: string; readonly rest: string } {
  const end = [...text.matchAll(/[.!?…](?=\s)|[。！？\n]/gu)].at(-1);
  const at = end === undefined ? 0 : end.index + 1;
  return { ready: text.slice(0, at), rest: text.slice(at) };
}
