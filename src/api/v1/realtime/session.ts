/**
 * One session of `/v1/realtime`. `realtime.ts` passes the client's events to `receive` and calls `dispose` once.
 *
 *   append ─► heard-sound ─► speech begins and ends ─► commit ─► utterance-queue ─► one transcription at a time
 *                  └──────── repeated transcription of the pending sound (early words): delta
 *
 * Each transcription is a request of its own to the slot (`ask-gateway.ts`). The session keeps the sound until it
 * is answered, so the slot may load, swap its model or restart meanwhile. `SVC_AUDIO_LIMIT` and, together with the
 * bodies of requests, `SVC_BUFFER_LIMIT` bound that memory.
 */
import { randomUUID } from 'node:crypto';
import { route, type RouteDecision } from '../../../gateway/route/decide/route.ts';
import type { Board } from '../../../reconciler/board.ts';
import { ERROR_CODES } from '../../../schema/words/error-codes.ts';
import type { ApiError } from '../../server/answer.ts';
import { decodeAudio, rateOf } from './decide/audio-format.ts';
import * as rules from './decide/session-settings.ts';
import * as utterances from './utterance-queue.ts';
import { createHeardSound } from './heard-sound.ts';
import type { InnerCaller } from '../ask-gateway.ts';

export const REALTIME_PATH = '/v1/realtime';

export interface SessionDeps extends InnerCaller, utterances.MemoryDeps {
  readonly board: Pick<Board, 'current'>;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Unix seconds at which the session ends. */
  readonly expiresAt: number;
  readonly send: (event: object) => void;
}

/** OpenAI's limit for a commit, and its code, which clients expect. */
const LEAST_COMMIT_MS = 100;
const COMMIT_EMPTY = 'input_audio_buffer_commit_empty';

type Problem = Pick<ApiError, 'code' | 'message' | 'param'>;

export class Session {
  readonly #deps: SessionDeps;
  readonly #id = `sess_${randomUUID()}`;
  readonly #ended = new AbortController();
  readonly #sound = createHeardSound(this);
  readonly #memory: ReturnType<typeof utterances.createSessionMemory>;
  readonly #words: utterances.EarlyWords;
  readonly #queue: utterances.UtteranceQueue;
  #settings: rules.SessionSettings;
  /** The sound that is not committed yet, in events. */
  #item: string | undefined;
  #lastItem: string | null = null;
  #onIdle: (() => void) | undefined;

  constructor(deps: SessionDeps, model: string | undefined) {
    this.#deps = deps;
    this.#memory = utterances.createSessionMemory(deps);
    const send = (event: object): void => this.#send(event);
    this.#words = utterances.createEarlyWords({ ...deps, send });
    this.#queue = utterances.createUtteranceQueue({ ...deps, send, signal: this.#ended.signal, onDone: () => this.#onUtteranceDone() });
    this.#settings = rules.firstSettings(model);
    this.#sendSession('session.created');
  }

  receive(text: string): void {
    const read = rules.readClientEvent(text);
    if (!read.ok) return this.#refuse({ code: 'request.invalid', message: read.message, param: read.param }, read.id);
    const { event, id } = read;
    switch (event.type) {
      case 'session.update':
        return this.#update(event.session, id);
      case 'input_audio_buffer.append':
        return this.#append(event.audio, id);
      case 'input_audio_buffer.commit':
        return this.#commitAsked(id);
      case 'input_audio_buffer.clear':
        this.#clear();
        return this.#send({ type: 'input_audio_buffer.cleared' });
      default:
        event satisfies never;
    }
  }

  sendError(error: { readonly type: string; readonly code: string; readonly message: string }): void {
    this.#sendError({ ...error, param: null }, undefined);
  }

  /** Commits the current utterance; calls back once everything is transcribed. */
  finish(callback: () => void): void {
    if (this.#isCollecting()) this.#commit();
    this.#onIdle = callback;
    if (!this.#queue.isBusy()) callback();
  }

  dispose(): void {
    this.#ended.abort(new Error('The client has left'));
    this.#words.end();
    this.#memory.keep(0);
  }

  onSpeechStarted(atMs: number): void {
    this.#send({ type: 'input_audio_buffer.speech_started', audio_start_ms: atMs, item_id: this.#currentItem() });
  }

  onSpeechStopped(atMs: number): void {
    this.#send({ type: 'input_audio_buffer.speech_stopped', audio_end_ms: atMs, item_id: this.#currentItem() });
    this.#commit();
  }

  #update(session: unknown, id: string | undefined): void {
    const updated = rules.updateSettings(this.#settings, session);
    if (!updated.ok) return this.#refuse({ code: 'request.invalid', message: updated.message, param: updated.param }, id);
    const { settings } = updated;
    const isOtherFormat = settings.format.type !== this.#settings.format.type;
    const beginsTurns = settings.turns !== undefined && this.#settings.turns === undefined;
    if ((isOtherFormat || beginsTurns) && this.#isCollecting()) {
      const message = 'The input audio buffer contains sound: commit or clear it before you change how it is read';
      return this.#refuse({ code: 'request.invalid', message, param: 'session.audio.input' }, id);
    }
    const decision = settings.transcription === undefined ? undefined : this.#routeOf(settings.transcription);
    if (decision?.kind === 'refuse') return this.#refuse({ ...decision, param: 'session.audio.input.transcription.model' }, id);
    if (isOtherFormat || beginsTurns) this.#clear();
    this.#settings = settings;
    this.#sendSession('session.updated');
  }

  #append(audio: string, id: string | undefined): void {
    const { format, turns } = this.#settings;
    const decoded = decodeAudio(audio, format);
    if (!decoded.ok) return this.#refuse({ code: 'request.invalid', message: decoded.message, param: 'audio' }, id);
    const { pcm } = decoded;
    const problem = this.#memory.reserve(pcm.length, this.#heldBytes());
    if (problem !== undefined) return this.#refuse({ ...problem, param: 'audio' }, id);
    this.#sound.add(pcm, format, turns);
    this.#memory.keep(this.#heldBytes());
    this.#askForWords();
  }

  #commitAsked(id: string | undefined): void {
    const ms = this.#sound.pendingMs(this.#settings.format);
    if (ms >= LEAST_COMMIT_MS) return this.#commit();
    const message = `The buffer has ${Math.floor(ms)} ms of sound: send at least ${LEAST_COMMIT_MS} ms before you commit it`;
    this.#sendError({ type: 'invalid_request_error', code: COMMIT_EMPTY, message, param: null }, id);
  }

  #commit(): void {
    const item = this.#currentItem();
    const sent = this.#words.end();
    this.#send({ type: 'input_audio_buffer.committed', item_id: item, previous_item_id: this.#lastItem });
    this.#item = undefined;
    this.#lastItem = item;
    const { transcription, format } = this.#settings;
    this.#queue.add({ item, pcm: this.#sound.take(), rate: rateOf(format), transcription, sent });
  }

  #onUtteranceDone(): void {
    if (this.#ended.signal.aborted) return;
    this.#memory.keep(this.#heldBytes());
    if (!this.#queue.isBusy()) this.#onIdle?.();
  }

  #askForWords(): void {
    const { transcription, turns, format } = this.#settings;
    const soundMs = this.#sound.pendingMs(format);
    if (transcription === undefined || this.#queue.isBusy() || (turns !== undefined && !this.#sound.isSpeech())) return;
    if (!this.#words.isTime(soundMs)) return;
    const decision = this.#routeOf(transcription);
    // Words that are not certain are no reason to load a model, or to wait for one.
    if (decision.kind !== 'slot' || decision.slot.admission.kind !== 'open') return;
    void this.#words.ask(this.#currentItem(), soundMs, { pcm: this.#sound.copy(), rate: rateOf(format), ...transcription });
  }

  #routeOf({ model }: rules.Transcription): RouteDecision {
    return route('transcription', REALTIME_PATH, model, this.#deps.board.current());
  }

  /** There is sound that the client, or the detection, wants transcribed. */
  #isCollecting(): boolean {
    return this.#settings.turns === undefined ? this.#sound.bytes() > 0 : this.#sound.isSpeech();
  }

  #clear(): void {
    this.#sound.clear();
    this.#words.end();
    this.#item = undefined;
    this.#memory.keep(this.#heldBytes());
  }

  #heldBytes(): number {
    return this.#sound.bytes() + this.#queue.bytes();
  }

  #currentItem(): string {
    this.#item ??= `item_${randomUUID()}`;
    return this.#item;
  }

  #sendSession(type: 'session.created' | 'session.updated'): void {
    this.#send({ type, session: rules.describeSession(this.#settings, { id: this.#id, expiresAt: this.#deps.expiresAt }) });
  }

  #refuse({ code, message, param }: Problem, id: string | undefined): void {
    this.#sendError({ type: ERROR_CODES[code].type, code, message, param }, id);
  }

  #sendError(error: object, id: string | undefined): void {
    this.#send({ type: 'error', error: { ...error, event_id: id ?? null } });
  }

  #send(event: object): void {
    this.#deps.send({ event_id: `event_${randomUUID()}`, ...event });
  }
}
