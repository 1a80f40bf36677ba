/**
 * The voice that a request for speech names. `Exchange` asks `delays` each time before it takes a hold on a slot. If the voice is a stored one, and the model of the slot imitates
 * voices, the recording is put into the body meanwhile, and the request is routed again:
 *
 *   delays ──► nothing to do, or done for such a model before                     false
 *         └──► plan-voice.ts ─┬─► read the recording, put it into the body        onFirstBoard
 *                             └─► the model has only voices of its own, refuse    fail
 */
import { codeOf } from '../../platform/error-text.ts';
import type { RoutedSlot } from '../../reconciler/board.ts';
import type { VoiceStore } from '../../schema/slot/voice-store.ts';
import type { BodyScan } from '../body/body-scan.ts';
import { insertRecording, imitatesVoices, planVoice, refuseStoredVoice } from './decide/plan-voice.ts';
import type { Refusal } from '../route/decide/route.ts';
import type { ExchangeDeps } from '../exchange-deps.ts';
import type { RequestBodyOwner } from '../client-exchange.ts';
import type { RequestBody } from '../body/request-body.ts';

export interface SpokenVoiceOwner extends Pick<RequestBodyOwner, 'fail'> {
  /** The request can be routed, from the beginning: its slot may have closed meanwhile. */
  onFirstBoard(): void;
}

interface SpeechRequest {
  readonly scan: Pick<BodyScan, 'voice'>;
  readonly requestBody: Pick<RequestBody, 'chunks' | 'replace' | 'resendable'>;
}

/** A class, because it remembers what was done to the body. */
export class SpokenVoice {
  readonly #request: SpeechRequest;
  readonly #deps: ExchangeDeps;
  readonly #owner: SpokenVoiceOwner;
  /** Whether the model for which the body was prepared imitates voices; undefined before the first one. A swap may bring one of the other kind. */
  #preparedFor: boolean | undefined;
  #inserted = false;

  constructor(request: SpeechRequest, deps: ExchangeDeps, owner: SpokenVoiceOwner) {
    this.#request = request;
    this.#deps = deps;
    this.#owner = owner;
  }

  /** The recording is read only now, so requests that wait for their slot do not hold it. */
  delays(slot: RoutedSlot): boolean {
    const { voice } = this.#request.scan;
    const { voices, providers } = this.#deps;
    if (voice === undefined || voices === undefined) return false;
    const imitates = imitatesVoices(providers, slot);
    if (this.#preparedFor === imitates) return false;
    this.#preparedFor = imitates;
    const plan = planVoice(voice, slot, imitates);
    if (plan === 'keep' || (plan === 'send' && this.#inserted)) return false;
    void this.#prepare(voice, voices, plan === 'refuse-stored' ? slot : undefined);
    return true;
  }

  /** `incapable`: the slot that refuses a stored voice. */
  async #prepare(name: string, voices: Pick<VoiceStore, 'find' | 'read'>, incapable: RoutedSlot | undefined): Promise<void> {
    const { board, providers } = this.#deps;
    let refusal: Refusal | undefined;
    try {
      if (incapable === undefined) refusal = await this.#insert(name, voices);
      else if ((await voices.find(name)) !== undefined) refusal = refuseStoredVoice(name, incapable, board.current(), providers);
    } catch (error) {
      const why = codeOf(error) || 'the disk failed';
      refusal = refuse(
        'server.internal',
        `Make the recording of the voice "${name}" readable, or delete the voice and store it again: it cannot be read (${why})`,
      );
    }
    if (!this.#request.requestBody.resendable) return;
    if (refusal === undefined) this.#owner.onFirstBoard();
    else this.#owner.fail(refusal.code, refusal.message, 'voice');
  }

  async #insert(name: string, voices: Pick<VoiceStore, 'read'>): Promise<Refusal | undefined> {
    const voice = await voices.read(name);
    const { requestBody } = this.#request;
    // Without a recording, the server says itself that it needs one. The client may have left meanwhile.
    if (voice === undefined || !requestBody.resendable) return undefined;
    this.#inserted = requestBody.replace(insertRecording(Buffer.concat(requestBody.chunks), voice));
    if (this.#inserted) return undefined;
    return refuse('server.overloaded', 'Try again later: request bodies fill the memory reserved for them ("SVC_BUFFER_LIMIT")');
  }
}

const refuse = (code: Refusal['code'], message: string): Refusal => ({ kind: 'refuse', code, message });
