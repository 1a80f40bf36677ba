/** The steps of a translation with the types of their results, for `yield*`; and translations that consist of one request. Pure. */
import type {
  AnswerHead,
  FormField,
  FormFile,
  KeptImage,
  RequestProgress,
  StepResult,
  Steps,
  TranslatableRequest,
  Translate,
  TranslationEnd,
  UpstreamAnswer,
  UpstreamHead,
  UpstreamRequest,
} from './translation.ts';

export function* ask(request: UpstreamRequest, limitBytes?: number): Steps<UpstreamAnswer> {
  const result = yield { kind: 'ask', request, ...(limitBytes === undefined ? {} : { limitBytes }) };
  return result.kind === 'answer' ? result.answer : wrongResult(result);
}

/** For what is asked again and again: nothing of the answer is kept beyond the next step. */
export function* askBriefly(request: UpstreamRequest, limitBytes: number): Steps<UpstreamAnswer> {
  const result = yield { kind: 'ask', request, limitBytes, brief: true };
  return result.kind === 'answer' ? result.answer : wrongResult(result);
}

export function* open(request: UpstreamRequest): Steps<UpstreamHead> {
  const result = yield { kind: 'open', request };
  return result.kind === 'head' ? result.head : wrongResult(result);
}

export function* nextBytes(): Steps<Uint8Array | undefined> {
  const result = yield { kind: 'next' };
  return result.kind === 'bytes' ? result.bytes : wrongResult(result);
}

/** `from` is an offset in the file. */
export function* readFile(file: FormFile, from: number, bytes: number): Steps<Uint8Array> {
  const result = yield { kind: 'read', file, from, bytes };
  return result.kind === 'bytes' && result.bytes !== undefined ? result.bytes : wrongResult(result);
}

export function* keepImage(request: UpstreamRequest): Steps<KeptImage> {
  const result = yield { kind: 'keep', request };
  return result.kind === 'kept' ? result.kept : wrongResult(result);
}

export function* wait(ms: number): Steps<void> {
  yield { kind: 'wait', ms };
}

/** After this, `nextMessage` gives what the server says. */
export function* listen(path: string): Steps<void> {
  yield { kind: 'listen', path };
}

export function* nextMessage(withinMs: number): Steps<Extract<StepResult, { kind: 'message' }>> {
  const result = yield { kind: 'message', withinMs };
  return result.kind === 'message' ? result : wrongResult(result);
}

export function* reportProgress(progress: RequestProgress): Steps<void> {
  yield { kind: 'progress', progress };
}

export function* begin(head: AnswerHead): Steps<void> {
  yield { kind: 'begin', head };
}

export function* write(bytes: string | Uint8Array): Steps<void> {
  yield { kind: 'write', bytes };
}

export function* onLeave(requests: readonly UpstreamRequest[]): Steps<void> {
  yield { kind: 'on-leave', requests };
}

/** For what must be done at the server, and what no client should wait for. */
export function* onEnd(requests: readonly UpstreamRequest[]): Steps<void> {
  yield { kind: 'on-end', requests };
}

/** A translation of one request into one request, and of its answer into one answer. */
export function translateOnce(
  toUpstream: (request: TranslatableRequest) => UpstreamRequest,
  fromUpstream: (answer: UpstreamAnswer, request: TranslatableRequest) => TranslationEnd,
): Translate {
  return function* run(request) {
    return fromUpstream(yield* ask(toUpstream(request)), request);
  };
}

/** Returns the body and the content type of a form for a server. Names of headers are spelt as in RFC 7578, since some servers compare them by case. File names of clients are not passed on: each file gets the name given here. */
export function formBody(
  boundary: string,
  fields: readonly FormField[],
  files: readonly { readonly name: string; readonly fileName: string; readonly file: FormFile }[],
): Required<Pick<UpstreamRequest, 'headers' | 'body'>> {
  const part = (disposition: string): string => `--${boundary}\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n`;
  const body = [
    ...fields.flatMap(({ name, value }) => [part(`name="${escapeName(name)}"`), value, '\r\n']),
    ...files.flatMap(({ name, fileName, file }) => [part(`name="${escapeName(name)}"; filename="${escapeName(fileName)}"`), file, '\r\n']),
    `--${boundary}--\r\n`,
  ];
  return { headers: { 'content-type': `multipart/form-data; boundary=${boundary}` }, body };
}

/** As browsers do. */
function escapeName(name: string): string {
  return name.replace(/["\r\n]/g, (character) => encodeURIComponent(character));
}

function wrongResult(result: StepResult): never {
  throw new TypeError(`Pass each step its own result, not "${result.kind}"`);
}
