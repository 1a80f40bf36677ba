/** One attempt to get an answer to a request from one endpoint: by passing it on (`Forward`), or by a translation of the provider (`TranslatedForward`). */
import type { ErrorCode } from '../schema/words/error-codes.ts';
import type { ClientAnswer } from './answer.ts';
import type { Usage } from './upstream/decide/judge-answer.ts';
import type { ExchangeDeps } from './exchange-deps.ts';
import type { Hold } from './traffic/hold.ts';
import type { LostAttempt } from './traffic/parked-request.ts';
import type { RequestBody } from './body/request-body.ts';

export interface AttemptOwner {
  onAttemptDone(): void;
  onAttemptLost(lost: LostAttempt): void;
  fail(code: ErrorCode, message: string, param?: string): void;
}

export interface AttemptRequest {
  readonly deps: Pick<ExchangeDeps, 'upstreams' | 'tick' | 'settings' | 'budget' | 'onFault' | 'keepImage'>;
  readonly hold: Hold;
  readonly requestId: string;
  readonly requestBody: RequestBody;
  readonly answer: ClientAnswer;
  /** `performance.now()` of the request's arrival. */
  readonly startedAt: number;
}

export interface Attempt {
  /** Undefined before the first byte of the answer. */
  readonly ttftMs: number | undefined;
  start(): void;
  /** A part of the request's body has arrived. */
  noteProgress(): void;
  checkTimeouts(now: number): void;
  usage(): Usage | undefined;
  /** Ends the attempt, because its workload is about to be stopped; the request is sent again if that is possible. */
  giveUp(message: string): void;
  /** Ends the attempt without a call to the owner. What is returned resolves when the endpoint is no longer in use; undefined: at once. */
  destroy(): Promise<void> | undefined;
}
