/** Serves the Responses API with chats. llama-server's own lacks fields that the SDKs require, and several turns. */
import { parseJson } from '../../platform/decide/parse-json.ts';
import { ask, begin, collect, nextBytes, open, write } from '../translation-steps.ts';
import type { Steps, Translate, TranslationEnd, UpstreamRequest } from '../translation.ts';
import { chatRequestOf } from './decide/responses-request.ts';
import { Chat, createResponseStream, type ChatPiece, type ResponseStream } from './responses-stream.ts';

const ANSWER_BYTES = 16 * 2 ** 20;
/** The longest line of a stream: a chunk with all arguments of a call. */
const LINE_LETTERS = 4 * 2 ** 20;
const UNUSABLE: TranslationEnd = { kind: 'failed', message: 'The model server answered in a form that cannot be translated' };

export const translateResponses: Translate = function* run({ body, requestId, receivedAt }) {
  const chat = chatRequestOf(body);
  if (!chat.ok) return chat.refusal;
  const headers = { 'content-type': 'application/json' };
  const request: UpstreamRequest = { method: 'POST', path: '/v1/chat/completions', headers, body: chat.text };
  const response = createResponseStream(chat.asked, requestId, receivedAt);
  if (chat.asked.stream === true) return yield* streamResponse(request, response);
  const answer = yield* ask(request, ANSWER_BYTES);
  if (answer.status >= 400) return { kind: 'upstream-error', answer };
  const whole = chatIn(new TextDecoder().decode(answer.body));
  if (whole?.choices === undefined) return UNUSABLE;
  return { kind: 'answer', status: 200, contentType: 'application/json', body: JSON.stringify(response.whole(whole)) };
};

function* streamResponse(request: UpstreamRequest, response: ResponseStream): Steps<TranslationEnd> {
  const head = yield* open(request);
  if (head.status >= 400) return { kind: 'upstream-error', answer: yield* collect(head) };
  yield* begin({ status: 200, contentType: 'text/event-stream', headers: { 'cache-control': 'no-cache' } });
  yield* write(response.begin());
  const decoder = new TextDecoder();
  let rest = '';
  for (let bytes = yield* nextBytes(); bytes !== undefined; bytes = yield* nextBytes()) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > LINE_LETTERS) return UNUSABLE;
    yield* write(lines.map((line) => eventsOf(line, response)).join(''));
    if (response.hasFailed()) break;
  }
  yield* write(response.end());
  return { kind: 'written' };
}

/** Comments keep connections open while a prompt is computed. */
function eventsOf(line: string, response: ResponseStream): string {
  if (line.startsWith(':')) return ':\n\n';
  const chunk = /^(?:data|error): ?\{/.test(line) ? chatIn(line.slice(line.indexOf('{'))) : undefined;
  return chunk === undefined ? '' : response.add(chunk);
}

const chatIn = (text: string): ChatPiece | undefined => Chat.safeParse(parseJson(text)).data;
