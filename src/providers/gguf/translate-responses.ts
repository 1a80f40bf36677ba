/**
 * Serves the Responses API with chats. llama-server's own lacks fields that the SDKs require, and several turns. The
 * events of a response from the chunks of a chat:
 *
 *   created, in_progress ─► for each item: added ─► deltas ─► done ─► completed or incomplete
 *
 * Reasoning, text and each call of a function are items. Each event has the next number of the sequence.
 */
import { z } from 'zod';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { ask, begin, collect, nextBytes, open, write } from '../translation-steps.ts';
import type { Steps, Translate, TranslationEnd, UpstreamRequest } from '../translation.ts';
import { chatRequestOf, type AskedResponse } from './decide/responses-request.ts';

const Call = z.object({
  index: z.number().optional(),
  id: z.string().nullish(),
  function: z.object({ name: z.string().nullish(), arguments: z.string().nullish() }).optional(),
});
const Delta = z.object({ content: z.string().nullish(), reasoning_content: z.string().nullish(), tool_calls: z.array(Call).nullish() });
const Usage = z.object({
  prompt_tokens: z.number(),
  completion_tokens: z.number(),
  prompt_tokens_details: z.object({ cached_tokens: z.number().nullish() }).nullish(),
});
/** A chunk, or a whole chat. */
const Chat = z.object({
  model: z.string().optional(),
  choices: z.array(z.object({ delta: Delta.optional(), message: Delta.optional(), finish_reason: z.string().nullish() })).optional(),
  usage: Usage.nullish(),
  error: z.object({ message: z.string() }).optional(),
});
type ChatPiece = z.output<typeof Chat>;

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

interface Item {
  readonly kind: 'reasoning' | 'message' | 'function_call';
  readonly id: string;
  readonly index: number;
  readonly call: { readonly index: number; readonly id: string; readonly name: string };
  text: string;
}

const PREFIX = { reasoning: 'rs', message: 'msg', function_call: 'fc' } as const;
const NO_CALL: Item['call'] = { index: -1, id: '', name: '' };
const DELTAS = {
  reasoning: 'response.reasoning_text.delta',
  message: 'response.output_text.delta',
  function_call: 'response.function_call_arguments.delta',
} as const;

type ResponseStream = ReturnType<typeof createResponseStream>;

function createResponseStream(asked: AskedResponse, requestId: string, receivedAt: number) {
  const said = Object.fromEntries(Object.entries(asked).filter(([key, value]) => !UNSAID.has(key) && value !== null));
  const output: object[] = [];
  let item: Item | undefined;
  let sequence = 0;
  let finish: string | undefined;
  let usage: ChatPiece['usage'];
  let error: string | undefined;
  /** The name that the server gives, for requests that name none. */
  let model = '';

  const event = (type: string, fields: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence++, ...fields })}\n\n`;

  function openItem(kind: Item['kind'], call = NO_CALL): string {
    if (item?.kind === kind && item.call.index === call.index) return '';
    const closed = closeItem();
    const index = output.length;
    item = { kind, id: `${PREFIX[kind]}_${requestId}_${index}`, index, call, text: '' };
    const added = event('response.output_item.added', { output_index: index, item: itemOf(item, 'in_progress') });
    return `${closed}${added}${partEvent('added')}`;
  }

  function closeItem(): string {
    if (item === undefined) return '';
    const { kind, id: item_id, index: output_index, text, call } = item;
    const at = { item_id, output_index, ...(kind === 'function_call' ? { name: call.name, arguments: text } : { content_index: 0, text }) };
    const done = event(DELTAS[kind].replace(/delta$/, 'done'), kind === 'message' ? { ...at, logprobs: [] } : at);
    const whole = itemOf(item, 'completed');
    const parts = partEvent('done');
    output.push(whole);
    item = undefined;
    return `${done}${parts}${event('response.output_item.done', { output_index, item: whole })}`;
  }

  function partEvent(what: 'added' | 'done'): string {
    if (item === undefined || item.kind === 'function_call') return '';
    return event(`response.content_part.${what}`, {
      item_id: item.id,
      output_index: item.index,
      content_index: 0,
      part: partOf(item),
    });
  }

  function extend(kind: Item['kind'], text: string | null | undefined, call?: Item['call']): string {
    if (typeof text !== 'string' || (text === '' && call === undefined)) return '';
    const opened = openItem(kind, call);
    if (item === undefined || text === '') return opened;
    item.text += text;
    const type = DELTAS[kind];
    const more = kind === 'function_call' ? '' : kind === 'message' ? ',"content_index":0,"logprobs":[]' : ',"content_index":0';
    // Written out, as there is one for each token.
    return `${opened}event: ${type}\ndata: {"type":"${type}","sequence_number":${sequence++},"item_id":"${item.id}","output_index":${item.index},"delta":${JSON.stringify(text)}${more}}\n\n`;
  }

  function response(state: 'in_progress' | 'completed'): object {
    const status = error !== undefined ? 'failed' : state === 'completed' && finish === 'length' ? 'incomplete' : state;
    return {
      id: `resp_${requestId}`,
      object: 'response',
      created_at: receivedAt,
      model,
      ...DEFAULTS,
      ...said,
      store: false,
      status,
      error: error === undefined ? null : { code: 'server_error', message: error },
      incomplete_details: status === 'incomplete' ? { reason: 'max_output_tokens' } : null,
      output,
      usage: usage ? usageOf(usage) : null,
    };
  }

  function add(chat: ChatPiece): string {
    const [choice] = chat.choices ?? [];
    model = chat.model ?? model;
    usage = chat.usage ?? usage;
    finish = choice?.finish_reason ?? finish;
    error = chat.error?.message ?? error;
    const said = choice?.delta ?? choice?.message;
    if (said === undefined) return '';
    const calls = said.tool_calls?.map((call, at) =>
      extend('function_call', call.function?.arguments ?? '', callOf(call, call.index ?? at)),
    );
    return `${extend('reasoning', said.reasoning_content)}${extend('message', said.content)}${calls?.join('') ?? ''}`;
  }

  /** Later pieces of a call have only its index. */
  function callOf(call: z.output<typeof Call>, index: number): Item['call'] {
    if (item?.call.index === index) return item.call;
    return { index, id: call.id || `call_${requestId}_${output.length + 1}`, name: call.function?.name ?? '' };
  }

  /** An answer without a word is an empty message. */
  const end = (): string => `${item === undefined && output.length === 0 ? openItem('message') : ''}${closeItem()}`;

  return {
    begin: () =>
      `${event('response.created', { response: response('in_progress') })}${event('response.in_progress', { response: response('in_progress') })}`,
    add,
    hasFailed: () => error !== undefined,
    end(): string {
      const last = error === undefined ? end() : closeItem();
      const whole = { response: response('completed') };
      const type = error !== undefined ? 'failed' : finish === 'length' ? 'incomplete' : 'completed';
      return `${last}${event(`response.${type}`, whole)}`;
    },
    /** The response as an object, of one whole chat. */
    whole(chat: ChatPiece): object {
      add(chat);
      end();
      return response('completed');
    },
  };
}

const UNSAID: ReadonlySet<string> = new Set(['input', 'stream']);
/** Fields that SDKs require, where the request does not say them. */
const DEFAULTS = {
  background: false,
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  temperature: null,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_p: null,
  truncation: 'disabled',
};

const partOf = ({ kind, text }: Pick<Item, 'kind' | 'text'>): object =>
  kind === 'message' ? { type: 'output_text', text, annotations: [], logprobs: [] } : { type: 'reasoning_text', text };

function itemOf({ kind, id, text, call }: Item, status: 'in_progress' | 'completed'): object {
  if (kind === 'function_call') return { id, type: kind, status, call_id: call.id, name: call.name, arguments: text };
  const content = status === 'in_progress' ? [] : [partOf({ kind, text })];
  return kind === 'message' ? { id, type: kind, status, role: 'assistant', content } : { id, type: kind, status, summary: [], content };
}

function usageOf({ prompt_tokens: input, completion_tokens: made, prompt_tokens_details: details }: z.output<typeof Usage>): object {
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: details?.cached_tokens ?? 0 },
    output_tokens: made,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + made,
  };
}
