/** Serves requests with FastFlowLM, which may crash if it loses a client: every request must finish. */
import { nextBytes, open, begin, collect, wait, write, ask, formBody } from '../translation-steps.ts';
import type { Steps, Translate, TranslationEnd, UpstreamRequest } from '../translation.ts';
import * as answers from './decide/npu-answers.ts';
import { LISTENER } from './decide/npu-models.ts';

/** Five minutes in all, as long as requests may be parked. */
const TRIES = 600;
const TRY_AGAIN_MS = 500;
/** 2048 vectors of 768 numbers. */
const VECTORS_BYTES = 64 * 2 ** 20;

export function translateChat(model: string): Translate {
  return function* run({ body }) {
    const asked = answers.chatRequest(body, model);
    if (!asked.ok) return asked.refusal;
    const request = jsonRequest('/v1/chat/completions', asked.text);
    if (asked.isStream) return yield* streamChat(request);
    const verdict = yield* askInTurn(request);
    if (verdict.kind !== 'answer') return endOf(verdict);
    if (!Array.isArray(verdict.value['choices'])) return answers.unusable();
    return { kind: 'answer', status: 200, contentType: 'application/json', body: JSON.stringify(verdict.value) };
  };
}

export const translateEmbedding: Translate = function* run({ body }) {
  const asked = answers.askedVectors(body);
  if (!asked.ok) return asked.refusal;
  const verdict = yield* askInTurn(jsonRequest('/v1/embeddings', answers.embeddingRequest(asked)), VECTORS_BYTES);
  return verdict.kind === 'answer' ? answers.embeddingAnswer(verdict.value, asked) : endOf(verdict);
};

export const translateTranscription: Translate = function* run({ body, boundary }) {
  const asked = answers.askedText(body);
  if (!asked.ok) return asked.refusal;
  const files = [{ name: 'file', fileName: 'recording', file: asked.file }];
  const form = formBody(boundary, [{ name: 'model', value: LISTENER }, ...asked.fields], files);
  const verdict = yield* askInTurn({ method: 'POST', path: '/v1/audio/transcriptions', ...form, mustFinish: true });
  return verdict.kind === 'answer' ? answers.transcriptionAnswer(verdict.value, asked.shape) : endOf(verdict);
};

const jsonRequest = (path: string, body: string): UpstreamRequest => ({
  method: 'POST',
  path,
  headers: { 'content-type': 'application/json' },
  body,
  mustFinish: true,
});

function* askInTurn(request: UpstreamRequest, limitBytes?: number): Steps<answers.Verdict> {
  for (let tries = 1; ; tries += 1) {
    const verdict = answers.judgeAnswer(yield* ask(request, limitBytes));
    if (verdict.kind !== 'queue-full' || tries === TRIES) return verdict;
    yield* wait(TRY_AGAIN_MS);
  }
}

function* streamChat(request: UpstreamRequest): Steps<TranslationEnd> {
  for (let tries = 1; ; tries += 1) {
    const head = yield* open(request);
    if (head.status === 200 && head.headers.get('content-type')?.startsWith('text/event-stream') === true) break;
    const verdict = answers.judgeAnswer(yield* collect(head));
    if (verdict.kind === 'answer') return answers.unusable();
    if (verdict.kind === 'end' || tries === TRIES) return endOf(verdict);
    yield* wait(TRY_AGAIN_MS);
  }
  yield* begin({ status: 200, contentType: 'text/event-stream', headers: { 'cache-control': 'no-cache' } });
  for (let bytes = yield* nextBytes(); bytes !== undefined; bytes = yield* nextBytes()) yield* write(bytes);
  return { kind: 'written' };
}

function endOf(verdict: Exclude<answers.Verdict, { kind: 'answer' }>): TranslationEnd {
  if (verdict.kind === 'end') return verdict.end;
  const message = 'Too many requests wait for the NPU, which computes one after the other; try again later';
  const body = new TextEncoder().encode(JSON.stringify({ error: { message, type: 'server_error' } }));
  return { kind: 'upstream-error', answer: { status: 503, headers: new Map(), body } };
}
