/**
 * The one vocabulary for what happens to a request. An `Exchange` receives all of `RequestEvents`; each part of the
 * gateway gets those that it causes, and calls them when its work is done:
 *
 *   body/       onProgress … onRoutable          enough is known to route the request
 *   traffic/    onOpen, onRoutable, onStopping   slot open; first board there; workload about to be stopped
 *   Attempt     onDone, onLost                   the answer is complete; another endpoint may answer
 *   each        fail                             the request cannot go on
 *
 * An `Attempt` in turn receives `UpstreamEvents` from its connection.
 */
import type { RoutedSlot } from '../reconciler/board.ts';
import type { ErrorCode } from '../schema/words/error-codes.ts';
import type { AnswerCounts } from './upstream/decide/count-media.ts';
import type { ResponseHead } from './upstream/decide/response-head.ts';
import type { Endpoint } from '../providers/provider.ts';
import type { RequestProgress } from '../providers/translation.ts';
import type { SlotName, WorkloadId } from '../schema/words/names.ts';

export interface RequestEvents {
  /** A chunk of the body has arrived, or something was done for the request. */
  onProgress(): void;
  /** The request can be routed, or must be routed again from the beginning. */
  onRoutable(): void;
  onOpen(slot: RoutedSlot): void;
  /** The workload is about to be stopped: end the attempt now and release the hold. */
  onStopping(): void;
  onLost(lost: LostAttempt): void;
  onDone(): void;
  /** Later calls do nothing. */
  fail(code: ErrorCode, message: string, param?: string | null): void;
}

export type AttemptEvents = Pick<RequestEvents, 'onDone' | 'onLost' | 'fail'>;

/** The claim of one request on an endpoint (`traffic/hold.ts`). */
export interface Hold {
  readonly slot: SlotName;
  readonly workload: WorkloadId;
  readonly endpoint: Endpoint;
  heard(): void;
  /** Kept until another request of the slot reports, or the hold is released. */
  report(progress: RequestProgress): void;
  /** `failed`: its server did not answer, or answered 5xx. Default: it did. Later calls do nothing. */
  release(failed?: boolean): void;
}

/** An attempt that ended before any part of an answer was passed on, or because the upstream is loading its model. */
export interface LostAttempt {
  readonly hold: Hold;
  readonly accepted: boolean;
  readonly message: string;
}

/** One attempt to get an answer from one endpoint: `Forward`, or `TranslatedForward` for translations of a provider. */
export interface Attempt {
  /** Undefined before the first byte of the answer. */
  readonly ttftMs: number | undefined;
  start(): void;
  noteProgress(): void;
  checkTimeouts(now: number): void;
  counts(): AnswerCounts;
  /** Ends the attempt, because its workload is about to be stopped; the request is sent again if possible. */
  giveUp(message: string): void;
  /** Ends the attempt without an event. Resolves when the endpoint is no longer in use; undefined: at once. */
  destroy(): Promise<void> | undefined;
}

export interface UpstreamEvents {
  onConnected(): void;
  /** More may be written, after `write` returned false. */
  onDrain(): void;
  onHead(head: ResponseHead): void;
  /** `last`: the response is complete; `bytes` may be empty then. */
  onBody(bytes: Buffer, last: boolean): void;
  onBroken(breakage: Breakage): void;
}

export interface Breakage {
  /** `refused`: no connection was established, so nothing was sent. */
  readonly kind: 'refused' | 'closed' | 'protocol';
  /** The connection had carried a request before, so the failure may be left over from that. */
  readonly reused: boolean;
  readonly message: string;
}
