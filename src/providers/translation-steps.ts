/** The steps of a translation with typed results, for `yield*`, and bodies of forms. Pure. */
import type {
  AnswerHead,
  FormField,
  FormFile,
  RequestProgress,
  StepResult,
  Steps,
  TranslationStep,
  UpstreamAnswer,
  UpstreamHead,
  UpstreamRequest,
} from './translation.ts';

type ResultOf<Kind> = Extract<StepResult, { readonly kind: Kind }>;

function* take<Kind extends StepResult['kind']>(kind: Kind, step: TranslationStep): Steps<ResultOf<Kind>> {
  const result = yield step;
  const isExpected = (each: StepResult): each is ResultOf<Kind> => each.kind === kind;
  if (isExpected(result)) return result;
  throw new TypeError(`Pass each step its own result, not "${result.kind}"`);
}

export function* ask(request: UpstreamRequest, limitBytes?: number): Steps<UpstreamAnswer> {
  return (yield* take('answer', { kind: 'ask', request, ...(limitBytes === undefined ? {} : { limitBytes }) })).answer;
}

/** For repeated requests: the response is dropped at the next step. */
export function* askBriefly(request: UpstreamRequest, limitBytes: number): Steps<UpstreamAnswer> {
  return (yield* take('answer', { kind: 'ask', request, limitBytes, brief: true })).answer;
}

export function* open(request: UpstreamRequest): Steps<ResultOf<'head'>['head']> {
  return (yield* take('head', { kind: 'open', request })).head;
}

export function* nextBytes(): Steps<Uint8Array | undefined> {
  return (yield* take('bytes', { kind: 'next' })).bytes;
}

const ERROR_BYTES = 2 ** 20;

/** Reads the rest of an open response, which is an error. */
export function* collect(head: UpstreamHead): Steps<UpstreamAnswer> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for (let bytes = yield* nextBytes(); bytes !== undefined; bytes = yield* nextBytes()) {
    length += bytes.length;
    if (length <= ERROR_BYTES) pieces.push(bytes);
  }
  return { ...head, body: Buffer.concat(pieces) };
}

export function* readFile(file: FormFile, from: number, bytes: number): Steps<Uint8Array> {
  const result = yield* take('bytes', { kind: 'read', file, from, bytes });
  if (result.bytes === undefined) throw new TypeError('Pass bytes to a step that reads a file');
  return result.bytes;
}

export function* keepImage(request: UpstreamRequest): Steps<ResultOf<'kept'>['kept']> {
  return (yield* take('kept', { kind: 'keep', request })).kept;
}

export const nextMessage = (withinMs: number): Steps<ResultOf<'message'>> => take('message', { kind: 'message', withinMs });

function* run(step: TranslationStep): Steps<void> {
  yield step;
}

export const wait = (ms: number): Steps<void> => run({ kind: 'wait', ms });
export const listen = (path: string): Steps<void> => run({ kind: 'listen', path });
export const reportProgress = (progress: RequestProgress): Steps<void> => run({ kind: 'progress', progress });
export const begin = (head: AnswerHead): Steps<void> => run({ kind: 'begin', head });
export const write = (bytes: string | Uint8Array): Steps<void> => run({ kind: 'write', bytes });
export const onLeave = (requests: readonly UpstreamRequest[]): Steps<void> => run({ kind: 'on-leave', requests });
/** For work at the server that no client should wait for. */
export const onEnd = (requests: readonly UpstreamRequest[]): Steps<void> => run({ kind: 'on-end', requests });

/** Header names are spelt as in RFC 7578: some servers compare them by case. Clients' file names are dropped. */
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

/** Like browsers. */
const escapeName = (name: string): string => name.replace(/["\r\n]/g, (character) => encodeURIComponent(character));
