/**
 * The body of a request for speech: it is short and kept as a whole, the length of its text is checked, and the
 * recording of a stored voice is inserted before the request is sent to a slot whose model imitates voices:
 *
 *   delaysAttempt ──► nothing to do, or done for such a model before                 false
 *               └───► plan-voice.ts ─┬─► read the recording, insert it in the body   onRoutable: the slot may be closed
 *                                    └─► the model has only voices of its own        fail
 */
import { codeOf } from '../../platform/error-text.ts';
import type { ProviderRegistry } from '../../providers/provider.ts';
import type { RoutedBoard, RoutedSlot } from '../../reconciler/board.ts';
import type { VoiceStore } from '../../schema/slot/voice-store.ts';
import type { BodyEvents, EditableBody } from '../body/body-scan.ts';
import { BODIES_FILL_MEMORY } from '../body/kept-body.ts';
import { JsonBody, type JsonBodyExtra } from '../body/json-body.ts';
import type { Refusal } from '../route/decide/route.ts';
import { checkSpeech } from './decide/check-media.ts';
import { imitatesVoices, insertRecording, planVoice, refuseStoredVoice } from './decide/plan-voice.ts';

export interface SpeechDeps {
  readonly board: RoutedBoard;
  readonly providers: ProviderRegistry;
  /** The stored voices. Default: there are none. */
  readonly voices?: Pick<VoiceStore, 'find' | 'read'> | undefined;
}

/** `\ud83d\ude00`: the longest way to write one character in JSON. */
const LONGEST_CHARACTER_BYTES = 12;
/** For all other fields: the longest one is the recording of a voice, with 3 MB in Base64. */
const OTHER_FIELDS_BYTES = 4_000_000 + 64 * 1024;

const WHOLE: JsonBodyExtra = { keepsAll: true };

export class SpeechBody extends JsonBody {
  readonly #limit: number;
  readonly #deps: SpeechDeps;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #isChecked = false;
  #voice: string | undefined;
  /** Whether the model that the body is prepared for imitates voices. A swap may change that. */
  #preparedFor: boolean | undefined;
  #isInserted = false;

  /** `limit` in characters. */
  constructor(limit: number, deps: SpeechDeps) {
    super(WHOLE);
    this.#limit = limit;
    this.#deps = deps;
  }

  override feed(chunk: Buffer): void {
    super.feed(chunk);
    if (this.#isChecked || this.status === 'invalid') return;
    this.#bytes += chunk.length;
    if (this.#bytes > this.#limit * LONGEST_CHARACTER_BYTES + OTHER_FIELDS_BYTES) {
      const message = `"input" is too long: send at most ${this.#limit} characters ("SVC_SPEECH_LIMIT")`;
      return this.#check({ problem: { message, param: 'input' } });
    }
    this.#chunks.push(chunk);
    if (this.status === 'done') this.#check(checkSpeech(Buffer.concat(this.#chunks).toString('utf8'), this.#limit));
  }

  /** The recording is read only now, so requests that wait for their slot do not hold it. */
  delaysAttempt(slot: RoutedSlot, body: EditableBody, events: BodyEvents): boolean {
    const voice = this.#voice;
    const { voices, providers } = this.#deps;
    if (voice === undefined || voices === undefined) return false;
    const imitates = imitatesVoices(providers, slot);
    if (this.#preparedFor === imitates) return false;
    this.#preparedFor = imitates;
    const plan = planVoice(voice, slot, imitates);
    if (plan === 'keep' || (plan === 'send' && this.#isInserted)) return false;
    const prepared = plan === 'send' ? this.#insert(voice, voices, body) : this.#refuseStored(voice, voices, slot);
    void prepared
      .catch((error: unknown) =>
        refuse(
          'server.internal',
          `The recording of the voice "${voice}" cannot be read (${codeOf(error) || 'the disk failed'}): delete the voice and store it again`,
        ),
      )
      .then((refusal) => {
        if (body.isReleased) return;
        if (refusal === undefined) events.onRoutable();
        else events.fail(refusal.code, refusal.message, 'voice');
      });
    return true;
  }

  #check({ problem, voice }: ReturnType<typeof checkSpeech>): void {
    this.#isChecked = true;
    if (problem !== undefined) this.refuse(problem);
    this.#voice = voice;
    this.#chunks = [];
  }

  async #insert(name: string, voices: Pick<VoiceStore, 'read'>, body: EditableBody): Promise<Refusal | undefined> {
    const voice = await voices.read(name);
    // Without a recording, the server says itself that it needs one. The client may have left meanwhile.
    if (voice === undefined || body.isReleased) return undefined;
    const pieces = insertRecording(Buffer.concat(body.chunks), voice);
    if (!body.edit(pieces)) return refuse('server.overloaded', BODIES_FILL_MEMORY);
    this.#isInserted = true;
    return undefined;
  }

  async #refuseStored(name: string, voices: Pick<VoiceStore, 'find'>, slot: RoutedSlot): Promise<Refusal | undefined> {
    const { board, providers } = this.#deps;
    return (await voices.find(name)) === undefined ? undefined : refuseStoredVoice(name, slot, board.current(), providers);
  }
}

const refuse = (code: Refusal['code'], message: string): Refusal => ({ kind: 'refuse', code, message });
