/** Translations for servers that speak dialects of their own, as providers write them. */
import type { Steps, TranslatableRequest, Translate, TranslationEnd } from '../../../src/providers/translation.ts';
import { ask, begin, formBody, nextBytes, onLeave, open, readFile, wait, write } from '../../../src/providers/translation-steps.ts';

export const json = (body: unknown, status = 200): TranslationEnd => ({
  kind: 'answer',
  status,
  contentType: 'application/json',
  body: JSON.stringify(body),
});
export const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');

/** One request into one request: a server that takes `{ "text": … }` and answers `{ "said": … }`. */
export const sayOnce: Translate = function* sayOnce({ body }) {
  const answer = yield* ask({
    method: 'POST',
    path: '/say',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ text: body.kind === 'json' ? Reflect.get(Object(body.value), 'input') : '' }),
  });
  if (answer.status !== 200) return { kind: 'upstream-error', answer };
  return json({ output: JSON.parse(textOf(answer.body)).said, usage: { prompt_tokens: 7, completion_tokens: 2 } });
};

/** A server with a queue, as ComfyUI's: the job is queued, asked for until it is done, and its file is fetched. */
export function* draw(): Steps<TranslationEnd> {
  const queued = yield* ask({ method: 'POST', path: '/prompt', body: '{"graph":{}}' });
  if (queued.status !== 200) return { kind: 'upstream-error', answer: queued };
  const { id } = JSON.parse(textOf(queued.body));
  yield* onLeave([{ method: 'POST', path: '/interrupt', body: JSON.stringify({ id }) }]);
  for (;;) {
    const history = yield* ask({ method: 'GET', path: `/history/${id}` });
    const { file } = JSON.parse(textOf(history.body));
    if (typeof file !== 'string') {
      yield* wait(2);
      continue;
    }
    yield* open({ method: 'GET', path: `/view?file=${file}` });
    yield* begin({ status: 200, contentType: 'application/json' });
    yield* write('{"data":[{"b64_json":"');
    for (let bytes = yield* nextBytes(); bytes !== undefined; bytes = yield* nextBytes()) yield* write(Buffer.from(bytes).toString('hex'));
    yield* write('"}]}');
    return { kind: 'written' };
  }
}

/** A form for a server with other names of fields, as whisper.cpp's. */
export function* transcribe({ body, boundary }: TranslatableRequest): Steps<TranslationEnd> {
  if (body.kind !== 'form') return { kind: 'failed', message: 'This is no form' };
  const [file] = body.files;
  if (file === undefined) return { kind: 'refuse', code: 'request.invalid', message: 'Send the recording as "file"', param: 'file' };
  const magic = textOf(yield* readFile(file, 0, 4));
  if (magic !== 'RIFF') return { kind: 'refuse', code: 'request.invalid', message: `Send a WAV file, not "${magic}"`, param: 'file' };
  const language = body.fields.find(({ name }) => name === 'language')?.value ?? 'auto';
  const form = formBody(boundary, [{ name: 'lang', value: language }], [{ name: 'audio', fileName: 'audio.wav', file }]);
  const answer = yield* ask({ method: 'POST', path: '/inference', ...form });
  return answer.status === 200 ? json({ text: textOf(answer.body).trim() }) : { kind: 'upstream-error', answer };
}
