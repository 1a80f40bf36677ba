/**
 * One connection of Wyoming. Events are handled one after the other:
 *
 *   describe                                         → info
 *   transcribe, audio-start, audio-chunk, audio-stop → transcript
 *   synthesize                                       → audio-start, audio-chunk, audio-stop
 *   synthesize-start, synthesize-chunk               → the same for whole sentences, as they arrive
 *   synthesize-stop                                  → the rest, and synthesize-stopped
 *
 * Each transcription and each piece of text is a request of its own through the gateway. A problem is an `error` event
 * and the end of the connection, because Home Assistant waits for an answer until then.
 */
import { once } from 'node:events';
import { z } from 'zod';
import { INFERENCE_PATHS } from '../../gateway/route/decide/inference-paths.ts';
import type { BufferBudget } from '../../gateway/traffic/traffic.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import type { Board } from '../../reconciler/board.ts';
import { askGateway, errorOf, transcribeSound, type InnerCaller } from '../v1/ask-gateway.ts';
import { describeServices, encodeWyoming, takeSentences, wyomingVoices, type WyomingEvent } from './decide/wyoming-events.ts';

export interface WyomingDeps extends InnerCaller {
  readonly board: Pick<Board, 'current'>;
  readonly budget: Pick<BufferBudget, 'reserve' | 'release'>;
  /** Bytes of one recording. */
  readonly soundLimit: number;
  /** Characters of one text. */
  readonly textLimit: number;
  readonly version: string;
}

/** Ends the connection with its message. */
export class WyomingError extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** The rate of `pcm` of every speech server with OpenAI's API: 16-bit samples in one channel. */
const SPOKEN = { rate: 24_000, width: 2, channels: 1 };
const SPEECH = INFERENCE_PATHS.find(({ path }) => path === '/v1/audio/speech');
const Format = z.object({ rate: z.int().min(8000).max(48_000), width: z.literal(2), channels: z.literal(1) });
const Transcribe = z.object({ name: z.string().max(200).nullish(), language: z.string().max(35).nullish() });
const Text = z.object({ text: z.string() });
const Voice = z.object({ voice: z.object({ name: z.string().max(200).nullish(), language: z.string().max(35).nullish() }).nullish() });

const SPEAKABLE = /[\p{L}\p{N}]/u;

type VoiceWish = z.output<typeof Voice>['voice'];

interface SpokenText {
  readonly voice?: VoiceWish;
  /** What is not spoken yet. */
  text: string;
  /** Sound of it has been sent. */
  hasBegun: boolean;
}

export function createWyomingSession(deps: WyomingDeps, signal: AbortSignal) {
  const { socket, board, budget } = deps;
  let wanted: z.output<typeof Transcribe> = {};
  let sound: { readonly rate: number; readonly pieces: Buffer[]; bytes: number } | undefined;
  let stream: SpokenText | undefined;

  async function write(type: string, data?: object, payload?: Buffer): Promise<void> {
    signal.throwIfAborted();
    if (!socket.write(encodeWyoming(type, data, payload))) await once(socket, 'drain', { signal });
  }

  function begin(data: unknown): void {
    const format = Format.safeParse(data);
    if (!format.success)
      throw new WyomingError('request.invalid', 'Send 16-bit samples in one channel with 8000 to 48000 Hz ("rate", "width", "channels")');
    forget();
    sound = { rate: format.data.rate, pieces: [], bytes: 0 };
  }

  function append({ data, payload }: WyomingEvent): void {
    if (sound === undefined) begin(data);
    if (sound === undefined || payload.length === 0) return;
    if (sound.bytes + payload.length > deps.soundLimit)
      throw new WyomingError('request.too_large', `The recording has over ${deps.soundLimit} bytes ("SVC_AUDIO_LIMIT"): send it in parts`);
    if (!budget.reserve(payload.length))
      throw new WyomingError('server.overloaded', 'The memory for bodies is full ("SVC_BUFFER_LIMIT"): send the recording again later');
    sound.bytes += payload.length;
    sound.pieces.push(Buffer.from(payload));
  }

  function forget(): void {
    budget.release(sound?.bytes ?? 0);
    sound = undefined;
  }

  async function transcribe(): Promise<void> {
    const { rate, pieces } = sound ?? { rate: 0, pieces: [] };
    const pcm = Buffer.concat(pieces);
    const { name, language } = wanted;
    const heard =
      pcm.length < 2
        ? { ok: true as const, text: '' }
        : await transcribeSound({ pcm, rate, model: name ?? undefined, language: language ?? undefined, prompt: undefined }, deps, signal);
    forget();
    if (!heard.ok) throw new WyomingError(heard.error.code ?? 'upstream.failed', heard.error.message);
    await write('transcript', { text: heard.text, ...(typeof language === 'string' ? { language } : {}) });
  }

  /** Speaks a part of a text as soon as its sound comes; all parts are one sound. */
  async function say(input: string, spoken: SpokenText): Promise<void> {
    if (SPEECH === undefined) throw new Error('There is no path for speech');
    const voice = findVoice(spoken.voice);
    const body = Buffer.from(JSON.stringify({ model: voice?.slot, voice: voice?.voice, input, response_format: 'pcm' }));
    let odd: Buffer = Buffer.alloc(0);
    const onPiece = async (piece: Buffer): Promise<void> => {
      const bytes = Buffer.concat([odd, piece]);
      const whole = bytes.length - (bytes.length % SPOKEN.width);
      odd = bytes.subarray(whole);
      if (whole === 0) return;
      if (!spoken.hasBegun) await write('audio-start', SPOKEN);
      spoken.hasBegun = true;
      await write('audio-chunk', SPOKEN, bytes.subarray(0, whole));
    };
    const { status, text } = await askGateway(deps, { path: SPEECH, contentType: 'application/json', body: [body], onPiece }, signal);
    if (status === 200) return;
    const { code, message } = errorOf(parseJson(text), 'The model server sent no speech: try again');
    throw new WyomingError(code ?? 'upstream.failed', message);
  }

  function findVoice(wish: VoiceWish) {
    const voices = wyomingVoices(board.current());
    if (wish?.name !== undefined && wish.name !== null) {
      const named = voices.find(({ name }) => name === wish.name);
      // Mixes and stored voices are not listed.
      return named ?? { slot: undefined, voice: wish.name };
    }
    const language = wish?.language?.toLowerCase().replace('_', '-');
    if (language === undefined) return undefined;
    return voices.find(({ languages }) =>
      languages.some((tag) => tag.toLowerCase() === language || tag.toLowerCase().startsWith(`${language}-`)),
    );
  }

  async function sayChunk(text: string): Promise<void> {
    if (stream === undefined) throw new WyomingError('request.invalid', 'Send "synthesize-start" before "synthesize-chunk"');
    const { ready, rest } = takeSentences(stream.text + text);
    const message = `A sentence has more than ${deps.textLimit} characters ("SVC_SPEECH_LIMIT"): send a shorter one`;
    if (rest.length > deps.textLimit) throw new WyomingError('request.invalid', message);
    stream.text = rest;
    if (SPEAKABLE.test(ready)) await say(ready, stream);
  }

  async function sayRest(spoken: SpokenText): Promise<void> {
    if (SPEAKABLE.test(spoken.text)) await say(spoken.text, spoken);
    if (spoken.hasBegun) await write('audio-stop');
    stream = undefined;
    await write('synthesize-stopped');
  }

  async function sayWhole(spoken: SpokenText): Promise<void> {
    await say(spoken.text, spoken);
    await write('audio-stop');
  }

  return {
    async handle(event: WyomingEvent): Promise<void> {
      const { type, data } = event;
      if (type === 'describe') return write('info', describeServices(board.current(), deps.version));
      if (type === 'ping') return write('pong', data);
      if (type === 'transcribe') wanted = parse(Transcribe, data);
      else if (type === 'audio-start') begin(data);
      else if (type === 'audio-chunk') append(event);
      else if (type === 'audio-stop') await transcribe();
      else if (type === 'synthesize-start') stream = { voice: parse(Voice, data).voice, text: '', hasBegun: false };
      else if (type === 'synthesize-chunk') await sayChunk(parse(Text, data).text);
      else if (type === 'synthesize-stop' && stream !== undefined) await sayRest(stream);
      // In a stream, the whole text is for services that cannot stream.
      else if (type === 'synthesize' && stream === undefined)
        await sayWhole({ ...parse(Text, data), ...parse(Voice, data), hasBegun: false });
      // Others concern parts of a voice assistant that this service is not.
    },
    dispose: forget,
  };
}

function parse<T extends z.ZodType>(shape: T, data: unknown): z.output<T> {
  const parsed = shape.safeParse(data);
  if (parsed.success) return parsed.data;
  throw new WyomingError('request.invalid', `The data of the event is invalid: ${z.prettifyError(parsed.error).split('\n', 2).join(' ')}`);
}
