/**
 * Translations: how a provider serves requests whose shape its server does not know. A translation is a generator that does no I/O itself: it yields steps, the
 * gateway performs each one and passes its result back. So it is tested without a server, and the gateway runs it under the same hold, limits, time limits,
 * cancellation, resending and error shape as a request that is forwarded.
 *
 *   function* translate(request: TranslatableRequest): Steps<TranslationEnd> {
 *     const queued = yield* ask({ method: 'POST', path: '/prompt', body: JSON.stringify(graphOf(request)) });
 *     yield* onLeave([{ method: 'POST', path: '/interrupt', body: '{}' }]);
 *     …
 *     return { kind: 'answer', status: 200, contentType: 'application/json', body: '{}' };
 *   }
 *
 * It may run more than once for one request: if the server dies before anything was written, the gateway starts it again on another one. A translation that throws, or that
 * never ends, fails its own request with `upstream.failed` or `upstream.timeout` and nothing else.
 */
import type { ErrorCode } from '../schema/words/error-codes.ts';
import type { Capability } from '../schema/slot/provider-kinds.ts';

export interface TranslatableRequest {
  /** The canonical path of the route. */
  readonly path: string;
  readonly capability: Capability;
  readonly requestId: string;
  /** When the request came, in Unix seconds. */
  readonly receivedAt: number;
  /** Not known to the client, so that it may separate the parts of a form: nothing that the client sends contains it. */
  readonly boundary: string;
  readonly body: TranslatableBody;
}

export type TranslatableBody =
  /** `value` is the parsed `text`. Numbers beyond 2^53 are exact only in the text. */
  | { readonly kind: 'json'; readonly text: string; readonly value: unknown }
  | { readonly kind: 'form'; readonly fields: readonly FormField[]; readonly files: readonly FormFile[] };

export interface FormField {
  readonly name: string;
  readonly value: string;
}

/** A file of a form. Its content stays with the gateway: a translation puts it into a request, or reads a part of it. */
export interface FormFile {
  readonly name: string;
  /** As the client sent it: may be empty, a path, or anything. */
  readonly fileName: string;
  readonly contentType: string | undefined;
  readonly bytes: number;
  /** Offset in the client's body, in bytes. */
  readonly from: number;
}

export interface UpstreamRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Path and query, in visible ASCII. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Texts are sent in UTF-8, files as the client sent them. */
  readonly body?: string | readonly (string | Uint8Array | FormFile)[];
  /** The server must not lose its client while it works on this: if the client of the gateway leaves, the answer is read to its end and dropped. Default: false. */
  readonly mustFinish?: true;
}

export interface UpstreamHead {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
}

export interface UpstreamAnswer extends UpstreamHead {
  readonly body: Uint8Array;
}

export type TranslationStep =
  /**
   * Sends a request to the server of the slot and collects the answer, of at most `limitBytes` (default 1 MiB). Its memory counts until the request ends; with `brief`,
   * until the next step, and the translation keeps nothing of it for longer. Result: `answer`.
   */
  | { readonly kind: 'ask'; readonly request: UpstreamRequest; readonly limitBytes?: number; readonly brief?: true }
  /** Sends a request and waits for the head of its answer. Ends an answer that is still open. Result: `head`. */
  | { readonly kind: 'open'; readonly request: UpstreamRequest }
  /** Waits for the next bytes of the open answer. Result: `bytes`. */
  | { readonly kind: 'next' }
  /** Reads a part of a file, of at most 1 MiB. Result: `bytes`. */
  | { readonly kind: 'read'; readonly file: FormFile; readonly from: number; readonly bytes: number }
  /** Waits; at least 1 ms. Result: `done`. */
  | { readonly kind: 'wait'; readonly ms: number }
  /**
   * Opens a WebSocket to the server of the slot, which is closed when the request ends, and waits until it is open. Closes one that is open already. It cannot fail: the
   * first message of a WebSocket that could not be opened is `closed`. Result: `done`.
   */
  | { readonly kind: 'listen'; readonly path: string }
  /** Waits for the next message of the WebSocket, at most so long. The memory of a message counts until the next step. Result: `message`. */
  | { readonly kind: 'message'; readonly withinMs: number }
  /** Says how far the server is with the request, for operators of the service. Result: `done`. */
  | { readonly kind: 'progress'; readonly progress: RequestProgress }
  /** Sends a request and puts the PNG image that it is answered with into the cache, where clients can fetch it. Result: `kept`. */
  | { readonly kind: 'keep'; readonly request: UpstreamRequest }
  /** Begins an answer to the client whose length is not known. From here on the request is not sent again. Result: `done`. */
  | { readonly kind: 'begin'; readonly head: AnswerHead }
  /** Writes to the client, and waits until it has read enough. Result: `done`. */
  | { readonly kind: 'write'; readonly bytes: string | Uint8Array }
  /** Replaces what the server is sent if the request ends before the translation does: because the client leaves, a time limit passes or the translation throws. Result: `done`. */
  | { readonly kind: 'on-leave'; readonly requests: readonly UpstreamRequest[] }
  /** Replaces what the server is sent after the request has ended, in whatever way. The client does not wait for it, and no answer is read. Result: `done`. */
  | { readonly kind: 'on-end'; readonly requests: readonly UpstreamRequest[] };

export type StepResult =
  | { readonly kind: 'answer'; readonly answer: UpstreamAnswer }
  | { readonly kind: 'head'; readonly head: UpstreamHead }
  /** Undefined: there are no more. */
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array | undefined }
  | { readonly kind: 'kept'; readonly kept: KeptImage }
  /** `waitedMs`: how long it took to come. */
  | { readonly kind: 'message'; readonly message: SocketMessage; readonly waitedMs: number }
  | { readonly kind: 'done' };

export type SocketMessage =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'binary'; readonly bytes: Uint8Array }
  /** None came in time. */
  | { readonly kind: 'none' }
  /** There will be no more: the server closed the WebSocket, broke its rules, or never opened it. */
  | { readonly kind: 'closed' };

/** `done` of `total` steps of whatever the server counts; `total` is at least 1. */
export interface RequestProgress {
  readonly done: number;
  readonly total: number;
}

/** `url`: where clients fetch the image. `problem`: why it could not be kept, and what to do, as a message. */
export type KeptImage = { readonly ok: true; readonly url: string } | { readonly ok: false; readonly problem: string };

export type Steps<Result> = Generator<TranslationStep, Result, StepResult>;

export interface AnswerHead {
  readonly status: number;
  readonly contentType: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export type TranslationEnd =
  | (AnswerHead & { readonly kind: 'answer'; readonly body: string | Uint8Array })
  /** Everything has been written. */
  | { readonly kind: 'written' }
  /** The request cannot be served. `param` names the field. */
  | { readonly kind: 'refuse'; readonly code: ErrorCode; readonly message: string; readonly param?: string }
  /** An error of the server, which gets the shape of OpenAI's errors. While its model loads, the request waits. */
  | { readonly kind: 'upstream-error'; readonly answer: UpstreamAnswer }
  /** The server broke its promise: `upstream.failed`. */
  | { readonly kind: 'failed'; readonly message: string };

export type Translate = (request: TranslatableRequest) => Steps<TranslationEnd>;
