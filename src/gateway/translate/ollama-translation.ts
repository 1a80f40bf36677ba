/**
 * Ollama's dialect, in terms of OpenAI's: `ollamaRequest` translates a request, `createOllamaAnswer` the chunks of a
 * stream, or a whole answer, to the lines that Ollama would send. Without I/O.
 */
import { z } from 'zod';
import { parseJson } from '../../platform/decide/parse-json.ts';

const Call = z.object({ id: z.string().nullish(), function: z.object({ name: z.string(), arguments: z.unknown() }) });
const Message = z.looseObject({
  role: z.string(),
  content: z.string().nullish(),
  thinking: z.string().nullish(),
  images: z.array(z.string()).nullish().describe('In Base64'),
  tool_calls: z.array(Call).nullish(),
  tool_name: z.string().nullish(),
  tool_call_id: z.string().nullish(),
});
const Common = z.looseObject({
  model: z.string().describe('A model id, an alias, a preset or the name of a slot, also with ":latest"'),
  stream: z.boolean().nullish().describe('Default: true'),
  format: z
    .union([z.literal(['', 'json']), z.looseObject({})])
    .nullish()
    .describe('"json", or a JSON Schema of the answer'),
  options: z.looseObject({}).nullish().describe('"temperature", "num_predict", "stop" and others; those of loading a model are ignored'),
  think: z.union([z.boolean(), z.string()]).nullish().describe('true, false, or how much: "low", "medium" or "high"'),
  keep_alive: z.unknown().optional().describe('Ignored: "idle_timeout" of the slot decides'),
});
export const OLLAMA_REQUESTS = {
  chat: Common.extend({ messages: z.array(Message).default([]), tools: z.array(z.unknown()).nullish() }),
  generate: Common.extend({
    prompt: z.string().nullish(),
    system: z.string().nullish(),
    suffix: z.literal('', 'Send a text with a "suffix" to "/infill"').nullish(),
    images: z.array(z.string()).nullish(),
    raw: z.boolean().nullish().describe('The prompt is sent without the template of chats'),
  }),
  embed: Common.extend({ input: z.union([z.string(), z.array(z.string())]), dimensions: z.int().nullish() }),
} as const;
export type OllamaKind = keyof typeof OLLAMA_REQUESTS;

/** Undefined: the request only loads the model, or unloads it. */
type Translated = { readonly path: string; readonly body: Readonly<Record<string, unknown>> } | undefined;

/** Options, by OpenAI's or llama-server's names where these differ. Others are decided when a model is loaded. */
const OPTIONS = new Map(
  'temperature top_p top_k min_p typical_p seed stop repeat_penalty repeat_last_n presence_penalty frequency_penalty mirostat mirostat_tau mirostat_eta num_keep:n_keep num_predict:max_tokens'
    .split(' ')
    .map((names) => [names.replace(/:.*/, ''), names.replace(/.*:/, '')] as const),
);

/** `asked`: of the schema for the kind. `model`: as the service knows it. */
export function ollamaRequest(kind: OllamaKind, asked: unknown, model: string): Translated {
  switch (kind) {
    case 'chat': {
      const chat = OLLAMA_REQUESTS.chat.parse(asked);
      const tools = (chat.tools ?? []).length === 0 ? {} : { tools: chat.tools };
      const body = { model, messages: messagesOf(chat.messages), ...tools, ...parametersOf(chat) };
      return chat.messages.length === 0 ? undefined : { path: '/v1/chat/completions', body };
    }
    case 'generate': {
      const { prompt, images, system, raw, ...rest } = OLLAMA_REQUESTS.generate.parse(asked);
      const content = prompt ?? '';
      if (content === '' && (images ?? []).length === 0) return undefined;
      if (raw === true) return { path: '/v1/completions', body: { model, prompt: content, ...parametersOf(rest) } };
      const before = (system ?? '') === '' ? [] : [{ role: 'system', content: system }];
      return {
        path: '/v1/chat/completions',
        body: { model, messages: messagesOf([...before, { role: 'user', content, images }]), ...parametersOf(rest) },
      };
    }
    case 'embed': {
      const { input, dimensions } = OLLAMA_REQUESTS.embed.parse(asked);
      return { path: '/v1/embeddings', body: { model, input, encoding_format: 'float', dimensions: dimensions ?? undefined } };
    }
    default:
      return kind satisfies never;
  }
}

function parametersOf({ stream, format, options, think }: z.output<typeof Common>): Readonly<Record<string, unknown>> {
  const known = Object.entries(options ?? {}).flatMap(([name, value]) => {
    const own = OPTIONS.get(name);
    // A negative number of tokens means no limit.
    return own === undefined || value === null || (name === 'num_predict' && Number(value) < 0) ? [] : [[own, value] as const];
  });
  const answer = format === 'json' ? { type: 'json_object' } : { type: 'json_schema', json_schema: { name: 'answer', schema: format } };
  const effort = typeof think === 'string' ? { reasoning_effort: think } : {};
  return {
    ...Object.fromEntries(known),
    ...((format ?? '') === '' ? {} : { response_format: answer }),
    ...(think === undefined || think === null ? {} : { ...effort, chat_template_kwargs: { enable_thinking: think !== false, ...effort } }),
    ...(stream === false ? { stream } : { stream: true, stream_options: { include_usage: true } }),
  };
}

/** Ollama's calls may have no ids: a result then belongs to the first open call, of its tool where it names one. */
function messagesOf(messages: readonly z.input<typeof Message>[]): readonly object[] {
  const open: { readonly id: string; readonly name: string }[] = [];
  let calls = 0;
  return messages.map(({ role, content, thinking, images, tool_calls: called, tool_name: name, tool_call_id: id }) => {
    if (role === 'tool') {
      const at = open.findIndex((call) => (id === undefined || id === null ? (name ?? call.name) === call.name : call.id === id));
      const [call] = at === -1 ? [] : open.splice(at, 1);
      return { role, tool_call_id: call?.id ?? id ?? 'call_0', content: content ?? '' };
    }
    const tool_calls = (called ?? []).map(({ id: callId, function: { name: tool, arguments: given } }) => {
      const own = callId ?? `call_${++calls}`;
      open.push({ id: own, name: tool });
      return { id: own, type: 'function', function: { name: tool, arguments: JSON.stringify(given ?? {}) } };
    });
    const parts = (images ?? []).map((image) => ({ type: 'image_url', image_url: { url: dataUrlOf(image) } }));
    return {
      role,
      content: parts.length === 0 ? (content ?? '') : [{ type: 'text', text: content ?? '' }, ...parts],
      ...((thinking ?? '') === '' ? {} : { reasoning_content: thinking }),
      ...(tool_calls.length === 0 ? {} : { tool_calls }),
    };
  });
}

/** By the first bytes. Servers look at the bytes as well, so the type of others does not matter. */
function dataUrlOf(image: string): string {
  const type = image.startsWith('/9j/') ? 'jpeg' : image.startsWith('UklG') ? 'webp' : image.startsWith('R0lG') ? 'gif' : 'png';
  return image.startsWith('data:') ? image : `data:image/${type};base64,${image}`;
}

const CalledTool = z.object({
  index: z.number().optional(),
  function: z.object({ name: z.string().nullish(), arguments: z.string().nullish() }).optional(),
});
const Said = z.object({
  content: z.string().nullish(),
  reasoning_content: z.string().nullish(),
  tool_calls: z.array(CalledTool).nullish(),
});
const Choice = z.object({
  delta: Said.optional(),
  message: Said.optional(),
  text: z.string().optional(),
  finish_reason: z.string().nullish(),
});
/** A chunk, or a whole answer: of a chat, of a completion, or embeddings. */
const Piece = z.object({
  choices: z.array(Choice).optional(),
  data: z.array(z.object({ embedding: z.array(z.number()) })).optional(),
  usage: z.object({ prompt_tokens: z.number().nullish(), completion_tokens: z.number().nullish() }).nullish(),
  timings: z.object({ prompt_ms: z.number().nullish(), predicted_ms: z.number().nullish() }).nullish(),
  error: z.object({ message: z.string() }).optional(),
});
type Piece = z.output<typeof Piece>;

/** The longest line of a stream: a chunk with all arguments of a call. */
const LINE_LETTERS = 4 * 2 ** 20;
const CUT = 'The answer of the model server ended too early: send the request again';

/** `now`: milliseconds, monotonic and of the wall. */
export function createOllamaAnswer(kind: OllamaKind, model: string, now: () => { readonly ms: number; readonly wallMs: number }) {
  const begunMs = now().ms;
  let firstMs: number | undefined;
  let finish: string | undefined;
  let usage: Piece['usage'];
  let timings: Piece['timings'];
  let isEnded = false;
  let rest = '';
  const decoder = new TextDecoder();
  const calls = new Map<number, { readonly name: string; readonly text: string }>();

  function bodyOf(content: string, thinking: string, called: readonly object[], end: object): object {
    const more = { ...(thinking === '' ? {} : { thinking }), ...(called.length === 0 ? {} : { tool_calls: called }) };
    const said = kind === 'chat' ? { message: { role: 'assistant', content, ...more } } : { response: content, ...more };
    return { model, created_at: new Date(now().wallMs).toISOString(), ...said, ...end };
  }
  const lineOf = (body: object): string => `${JSON.stringify(body)}\n`;
  const failed = (error: string): string => {
    isEnded = true;
    return lineOf({ error });
  };

  /** Takes over a piece; returns its text and reasoning. */
  function take(piece: Piece): readonly [content: string, thinking: string] {
    const [choice] = piece.choices ?? [];
    const said = choice?.delta ?? choice?.message;
    firstMs ??= now().ms;
    usage = piece.usage ?? usage;
    timings = piece.timings ?? timings;
    finish = choice?.finish_reason ?? finish;
    for (const [order, { index = order, function: part }] of (said?.tool_calls ?? []).entries()) {
      const { name = '', text = '' } = calls.get(index) ?? {};
      calls.set(index, { name: name + (part?.name ?? ''), text: text + (part?.arguments ?? '') });
    }
    return [said?.content ?? choice?.text ?? '', said?.reasoning_content ?? ''];
  }
  const toolCalls = (): readonly object[] =>
    [...calls.values()].map(({ name, text }, index) => ({ function: { index, name, arguments: parseJson(text) ?? {} } }));

  /** Times in nanoseconds, by the server where it says them. */
  function ending(): object {
    const { ms } = now();
    const nanoseconds = (span: number): number => Math.max(1, Math.round(span * 1e6));
    return {
      done: true,
      done_reason: finish === 'length' ? 'length' : 'stop',
      total_duration: nanoseconds(ms - begunMs),
      load_duration: 0,
      prompt_eval_count: usage?.prompt_tokens ?? 0,
      prompt_eval_duration: nanoseconds(timings?.prompt_ms ?? (firstMs ?? ms) - begunMs),
      eval_count: usage?.completion_tokens ?? 0,
      eval_duration: nanoseconds(timings?.predicted_ms ?? ms - (firstMs ?? begunMs)),
    };
  }

  function translate(line: string): string {
    const [, json] = /^(?:data|error): ?(\{.*)$/s.exec(line) ?? [];
    const piece = json === undefined ? undefined : Piece.safeParse(parseJson(json)).data;
    if (piece === undefined || isEnded) return '';
    if (piece.error !== undefined) return failed(piece.error.message);
    const [content, thinking] = take(piece);
    return content + thinking === '' ? '' : lineOf(bodyOf(content, thinking, [], { done: false }));
  }

  return {
    /** Lines for a piece of a stream of events. */
    add(bytes: Uint8Array): string {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      return rest.length > LINE_LETTERS ? failed(CUT) : lines.map(translate).join('');
    },
    /** The last lines of a stream. `isCut`: it did not end by itself. */
    end(isCut: boolean): string {
      if (isEnded) return '';
      if (isCut || finish === undefined) return failed(CUT);
      const called = calls.size === 0 ? '' : lineOf(bodyOf('', '', toolCalls(), { done: false }));
      return `${called}${lineOf(bodyOf('', '', [], ending()))}`;
    },
    /** A whole answer. Undefined: the server sent something else. */
    whole(json: unknown): object | undefined {
      const piece = Piece.safeParse(json).data;
      if (piece?.choices === undefined && piece?.data === undefined) return undefined;
      const [content, thinking] = take(piece);
      if (kind !== 'embed') return bodyOf(content, thinking, toolCalls(), ending());
      return { model, embeddings: (piece.data ?? []).map(({ embedding }) => embedding), ...ending() };
    },
    /** Nothing was asked: the service loads and unloads models as their slots say. */
    loaded: (keepAlive: unknown): object =>
      bodyOf('', '', [], { done: true, done_reason: /^0[a-z]*$/.test(String(keepAlive)) ? 'unload' : 'load' }),
  };
}
