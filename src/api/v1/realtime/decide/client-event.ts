/** Reads the events that clients of `/v1/realtime` send. Pure. */
import { z } from 'zod';
import { parseJson } from '../../../../platform/decide/parse-json.ts';
import { shorten } from '../../../../schema/shorten.ts';

export type ClientEvent =
  | { readonly type: 'session.update'; readonly session?: unknown }
  | { readonly type: 'input_audio_buffer.append'; readonly audio: string }
  | { readonly type: 'input_audio_buffer.commit' }
  | { readonly type: 'input_audio_buffer.clear' };

export type ReadEvent =
  | { readonly ok: true; readonly event: ClientEvent; readonly id: string | undefined }
  | { readonly ok: false; readonly message: string; readonly param: string | null; readonly id: string | undefined };

/** OpenAI's limit. */
const ID_CHARACTERS = 512;
const SHOWN_CHARACTERS = 100;

const Named = z.object({ type: z.string() });
const Identified = z.object({ event_id: z.string().max(ID_CHARACTERS) });
const Event = z.discriminatedUnion('type', [
  z.object({ type: z.literal('session.update'), session: z.unknown().optional() }),
  z.object({ type: z.literal('input_audio_buffer.append'), audio: z.string() }),
  z.object({ type: z.literal('input_audio_buffer.commit') }),
  z.object({ type: z.literal('input_audio_buffer.clear') }),
]);
const TYPES: readonly string[] = Event.options.map(({ shape }) => shape.type.value);
/** Of conversations, which this service does not hold. */
const CONVERSATION = /^(?:conversation\.|response\.|output_audio_buffer\.)/;

/** An id that is no text is left out: it only comes back in errors. */
export function readClientEvent(text: string): ReadEvent {
  const json = parseJson(text);
  const id = Identified.safeParse(json).data?.event_id;
  const named = Named.safeParse(json);
  if (!named.success) return { ok: false, message: 'Send each event as a JSON object with a "type"', param: 'type', id };
  const { type } = named.data;
  const parsed = Event.safeParse(json);
  if (parsed.success) return { ok: true, event: parsed.data, id };
  if (TYPES.includes(type)) return { ok: false, message: 'Send the sound in "audio", as text in Base64', param: 'audio', id };
  const why = CONVERSATION.test(type)
    ? 'a session transcribes; conversations are at "/v1/chat/completions", speech at "/v1/audio/speech"'
    : `the known ones are ${TYPES.map((known) => `"${known}"`).join(', ')}`;
  return { ok: false, message: `Send another event than "${shorten(type, SHOWN_CHARACTERS)}": ${why}`, param: 'type', id };
}
