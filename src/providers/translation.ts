/**
 * Translations serve requests whose shape the server of a provider does not know. A translation is a generator without
 * I/O: it yields steps, the gateway performs each one and passes its result back. It runs under the same hold, limits,
 * timeouts, cancellation, resending and error shape as a forwarded request.
 *
 *   function* translate(request: TranslatableRequest): Steps<TranslationEnd> {
 *     const queued = yield* ask({ method: 'POST', path: '/prompt', body: JSON.stringify(graphOf(request)) });
 *     yield* onLeave([{ method: 'POST', path: '/interrupt', body: '{}' }]);
 *     …
 *     return { kind: 'answer', status: 200, contentType: 'application/json', body: '{}' };
 *   }
 *
 * It may run more than once: if the server dies before anything was written, the gateway starts it on another one. One
 * that throws or never ends fails its own request with `upstream.failed` or `upstream.timeout`.
 */
import type { ErrorCode } from '../schema/words/error-codes.ts';
import type { Capability } from '../schema/slot/provider-kinds.ts';

export interface TranslatableRequest {
  readonly path: string;
  readonly capability: Capability;
  readonly requestId: string;
  /** Unix seconds. */
  readonly receivedAt: number;
  /** Form boundary that the client does not know: nothing that it sends contains it. */
  readonly boundary: string;
  readonly body: TranslatableBody;
}

export type TranslatableBody =
  /** `value` is the parsed `text`; only the text has exact numbers beyond 2^53. */
  | { readonly kind: 'json'; readonly text: string; readonly value: unknown }
  | { readonly kind: 'form'; readonly fields: readonly FormField[]; readonly files: readonly FormFile[] };

export type FormField = { readonly name: string; readonly value: string };

/** The gateway keeps the content: translations place it in a request or read parts of it. */
export interface FormFile {
  readonly name: string;
  /** As sent by the client: may be empty, a path, or anything. */
  readonly fileName: string;
  readonly contentType: string | undefined;
  readonly bytes: number;
  readonly from: number;
}

export interface UpstreamRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Path and query in visible ASCII. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Strings are sent as UTF-8, files as the client sent them. */
  readonly body?: string | readonly (string | Uint8Array | FormFile)[];
  /** The server must not lose its client: if the client of the gateway leaves, the response is read and dropped. */
  readonly mustFinish?: true;
}

export type UpstreamHead = { readonly status: number; readonly headers: ReadonlyMap<string, string> };

export interface UpstreamAnswer extends UpstreamHead {
  readonly body: Uint8Array;
}

export type TranslationStep =
  /** Collects up to `limitBytes` (default 1 MiB), kept until the end; with `brief`, until the next step. */
  | { readonly kind: 'ask'; readonly request: UpstreamRequest; readonly limitBytes?: number; readonly brief?: true }
  /** Sends a request and waits for the head of its response. Ends a response that is still open. Result: `head`. */
  | { readonly kind: 'open'; readonly request: UpstreamRequest }
  /** Waits for the next bytes of the open response. Result: `bytes`. */
  | { readonly kind: 'next' }
  /** Reads up to 1 MiB of a file. Result: `bytes`. */
  | { readonly kind: 'read'; readonly file: FormFile; readonly from: number; readonly bytes: number }
  /** Waits, at least 1 ms. Result: `done`. */
  | { readonly kind: 'wait'; readonly ms: number }
  /** Opens the WebSocket. Cannot fail: one that did not open gives `closed` as first message. Result: `done`. */
  | { readonly kind: 'listen'; readonly path: string }
  /** Waits up to `withinMs` for the next message, whose memory counts until the next step. Result: `message`. */
  | { readonly kind: 'message'; readonly withinMs: number }
  /** Reports the progress of the server to operators. Result: `done`. */
  | { readonly kind: 'progress'; readonly progress: RequestProgress }
  /** Sends a request and caches its PNG image for clients to fetch. Result: `kept`. */
  | { readonly kind: 'keep'; readonly request: UpstreamRequest }
  /** Begins a response of unknown length. The request is not resent after this. Result: `done`. */
  | { readonly kind: 'begin'; readonly head: AnswerHead }
  /** Writes to the client with back-pressure. Result: `done`. */
  | { readonly kind: 'write'; readonly bytes: string | Uint8Array }
  /** Replaces the requests sent if the client leaves, a timeout passes or the run throws. Result: `done`. */
  | { readonly kind: 'on-leave'; readonly requests: readonly UpstreamRequest[] }
  /** Replaces the requests sent after the end of the request; they are not awaited. Result: `done`. */
  | { readonly kind: 'on-end'; readonly requests: readonly UpstreamRequest[] };

export type StepResult =
  | { readonly kind: 'answer'; readonly answer: UpstreamAnswer }
  | { readonly kind: 'head'; readonly head: UpstreamHead }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array | undefined }
  | { readonly kind: 'kept'; readonly kept: KeptImage }
  | { readonly kind: 'message'; readonly message: SocketMessage; readonly waitedMs: number }
  | { readonly kind: 'done' };

export type SocketMessage =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'binary'; readonly bytes: Uint8Array }
  | { readonly kind: 'none' }
  /** The last one: the WebSocket was closed, broken or never opened. */
  | { readonly kind: 'closed' };

/** Steps in any unit of the server; `total` is at least 1. */
export type RequestProgress = { readonly done: number; readonly total: number };
/** `url`: where clients fetch the image. `problem`: why it could not be kept, and what to do. */
export type KeptImage = { readonly ok: true; readonly url: string } | { readonly ok: false; readonly problem: string };

export type Steps<Result> = Generator<TranslationStep, Result, StepResult>;

export type AnswerHead = { readonly status: number; readonly contentType: string; readonly headers?: Readonly<Record<string, string>> };

export type TranslationEnd =
  | (AnswerHead & { readonly kind: 'answer'; readonly body: string | Uint8Array })
  | { readonly kind: 'written' }
  | { readonly kind: 'refuse'; readonly code: ErrorCode; readonly message: string; readonly param?: string }
  /** Error of the server, in the shape of OpenAI's errors. While its model loads, the request waits. */
  | { readonly kind: 'upstream-error'; readonly answer: UpstreamAnswer }
  | { readonly kind: 'failed'; readonly message: string };

export type Translate = (request: TranslatableRequest) => Steps<TranslationEnd>;
