/** A loaded model, which turns text into text, vectors or scores. Independent of HTTP. */
import { availableParallelism } from 'node:os';
import { createStopStrings } from './decide/stop-strings.ts';
import type { Flags } from './decide/parse-flags.ts';
import { refuse, type Message, type Outcome, type Sampling, type TextInput } from './decide/parse-request.ts';
import type { FinishReason, Usage } from './decide/format-response.ts';
import { loadNative, loadTemplate, type ChatTemplate } from './load-native.ts';
import type { NativeEmbedder, NativeModel, NativeRanker, NativeSequence, Token } from './native.ts';
import { createWorkQueue, type WorkQueue } from './work-queue.ts';

export interface Generated {
  readonly text: string;
  readonly finish: FinishReason;
  readonly usage: Usage;
}

export interface Engine {
  readonly context: number;
  prompt(messages: readonly Message[]): Promise<Outcome<TextInput>>;
  /** Calls `onText` with each piece of text and awaits it, which provides back-pressure. */
  generate(
    prompt: TextInput,
    sampling: Sampling,
    onText: (text: string) => Promise<void>,
    signal: AbortSignal,
  ): Promise<Outcome<Generated>>;
  embed(
    inputs: readonly TextInput[],
    signal: AbortSignal,
  ): Promise<Outcome<{ readonly vectors: readonly (readonly number[])[]; readonly tokens: number }>>;
  rerank(
    query: string,
    documents: readonly string[],
    signal: AbortSignal,
  ): Promise<Outcome<{ readonly scores: readonly number[]; readonly tokens: number }>>;
  tokenize(text: string, special: boolean): readonly number[];
}

/** The largest context unless one is set: on a CPU, a longer one needs much memory and is rarely filled. */
const DEFAULT_CONTEXT = 8192;
/** Up to this size, several contexts are created, one for each concurrent request. */
const CHEAP_CONTEXT = 16_384;
const MAX_WAITING = 256;
/** More tokens than the bytes of the longest character: pending tokens that are not valid text by then never will be. */
const MAX_PENDING_TOKENS = 8;
const CHATML =
  '{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}';

const ABORTED = refuse(499, 'server_error', 'The client disconnected');
const FULL = refuse(503, 'unavailable_error', `Try again later: ${MAX_WAITING} requests are already waiting`);

export async function loadEngine(flags: Flags, modulesDir: string): Promise<Engine> {
  const threads = flags.threads || Math.max(1, availableParallelism() - 1);
  const native = await loadNative(modulesDir, threads);
  const model = await native.loadModel({ modelPath: flags.model });
  const size = { contextSize: flags.context || Math.min(model.trainContextSize, DEFAULT_CONTEXT), threads };
  if (flags.mode === 'embed') {
    const embedder = await model.createEmbeddingContext({ ...size, batchSize: size.contextSize });
    return createEngine(model, size.contextSize, { embedder: createWorkQueue([embedder], MAX_WAITING) }, modulesDir);
  }
  if (flags.mode === 'rerank') {
    const ranker = await model.createRankingContext({ ...size, batchSize: size.contextSize });
    return createEngine(model, size.contextSize, { ranker: createWorkQueue([ranker], MAX_WAITING) }, modulesDir);
  }
  const wanted = flags.parallel || (size.contextSize <= CHEAP_CONTEXT ? 4 : 1);
  const sequences = createWorkQueue([await createSequence(model, size)], MAX_WAITING);
  void addSequences(model, size, wanted - 1, sequences);
  return createEngine(model, size.contextSize, { sequences }, modulesDir);
}

type Size = { readonly contextSize: number; readonly threads: number };

/**
 * Creates a separate context for each concurrent request. With several sequences in one context, a request sometimes gets a token of
 * another one, because the library samples them on several threads from shared logits.
 */
async function createSequence(model: NativeModel, size: Size): Promise<NativeSequence> {
  return (await model.createContext({ ...size, sequences: 1 })).getSequence();
}

/** Adds further sequences in the background; one is enough to answer requests. */
async function addSequences(model: NativeModel, size: Size, count: number, queue: WorkQueue<NativeSequence>): Promise<void> {
  try {
    for (let added = 0; added < count; added += 1) queue.add(await createSequence(model, size));
  } catch (error) {
    process.stderr.write(
      `warning: The memory is not sufficient for more concurrent requests: ${error instanceof Error ? error.message : String(error)}\n`,
    );
  }
}

interface Queues {
  readonly sequences?: WorkQueue<NativeSequence>;
  readonly embedder?: WorkQueue<NativeEmbedder>;
  readonly ranker?: WorkQueue<NativeRanker>;
}

function createEngine(model: NativeModel, context: number, queues: Queues, modulesDir: string): Engine {
  let template: Promise<ChatTemplate> | undefined;
  const templateOnce = (): Promise<ChatTemplate> => {
    const source = model.fileInfo.metadata.tokenizer?.chat_template;
    return (template ??= loadTemplate(modulesDir, typeof source === 'string' ? source : CHATML));
  };
  // Already now, so that a running server does not depend on the directory of its modules. The first prompt reports an error.
  if (queues.sequences !== undefined) void templateOnce().catch(() => undefined);
  const tokens = (input: TextInput): Token[] => tokensOf(model, input);
  return {
    context,
    async prompt(messages) {
      try {
        const text = (await templateOnce()).render({
          messages,
          add_generation_prompt: true,
          bos_token: model.tokens.bosString ?? '',
          eos_token: model.tokens.eosString ?? '',
        });
        return { ok: true, value: text };
      } catch (error) {
        return refuse(400, 'invalid_request_error', `The chat template of the model does not accept these messages: ${String(error)}`);
      }
    },
    async generate(input, sampling, onText, signal) {
      if (queues.sequences === undefined)
        return refuse(422, 'not_supported_error', 'Send the request to another server: this one was not started for text generation');
      const prompt = tokens(input);
      if (prompt.length >= context) return tooLong(prompt.length, context);
      const done = await queues.sequences.run((sequence) => generateOn({ model, sequence }, { prompt, sampling }, onText, signal), signal);
      return toOutcome(done);
    },
    async embed(inputs, signal) {
      if (queues.embedder === undefined)
        return refuse(422, 'not_supported_error', 'Start the server with "--embeddings": it does not support embeddings now');
      const done = await queues.embedder.run((embedder) => embedOn(embedder, inputs.map(tokens), context, signal), signal);
      return toOutcome(done);
    },
    async rerank(query, documents, signal) {
      if (queues.ranker === undefined)
        return refuse(422, 'not_supported_error', 'Start the server with "--reranking": it does not support reranking now');
      const length = (text: string): number => model.tokenize(text, false).length;
      const most = length(query) + Math.max(...documents.map(length)) + 4;
      if (most >= context) return tooLong(most, context);
      const done = await queues.ranker.run((ranker) => rankOn(ranker, query, documents, signal), signal);
      if (done === 'full' || done === 'aborted' || !done.ok) return toOutcome(done);
      return {
        ok: true,
        value: { scores: done.value, tokens: documents.reduce((sum, text) => sum + length(query) + length(text) + 4, 0) },
      };
    },
    tokenize: (text, special) => (special ? tokens(text) : model.tokenize(text, true)),
  };
}

async function generateOn(
  { model, sequence }: { readonly model: NativeModel; readonly sequence: NativeSequence },
  { prompt, sampling }: { readonly prompt: Token[]; readonly sampling: Sampling },
  onText: (text: string) => Promise<void>,
  signal: AbortSignal,
): Promise<Outcome<Generated>> {
  // The sequence keeps the state of an earlier turn as far as the prompt is the same. The last token must be evaluated again to continue from it.
  await sequence.adaptStateToTokens(prompt.slice(0, -1), false);
  const cachedTokens = sequence.nextTokenIndex;
  const limit = Math.min(sampling.maxTokens ?? Number.POSITIVE_INFINITY, sequence.contextSize - prompt.length);
  const stop = createStopStrings(sampling.stop);
  const text = createTokenText(model);
  let whole = '';
  let finish: FinishReason = 'length';
  let completionTokens = 0;
  const send = async (piece: string): Promise<void> => {
    whole += piece;
    if (piece !== '') await onText(piece);
  };
  const generation = sequence.evaluate(
    prompt.slice(cachedTokens),
    evaluateOptions(sampling, () => text.last()),
  );
  if (limit > 0) {
    for await (const token of generation) {
      if (signal.aborted) return ABORTED;
      completionTokens += 1;
      const ended = model.isEogToken(token) && !sampling.ignoreEnd;
      const next = ended ? undefined : stop.push(text.push(token));
      if (next !== undefined) await send(next.text);
      if (ended || next?.stopped === true) finish = 'stop';
      if (finish === 'stop' || completionTokens >= limit) break;
    }
  }
  await send(stop.end());
  return { ok: true, value: { text: whole, finish, usage: { promptTokens: prompt.length, completionTokens, cachedTokens } } };
}

function evaluateOptions(sampling: Sampling, last: () => Token[]) {
  const { temperature, topK, topP, minP, seed, repeatPenalty } = sampling;
  return {
    temperature,
    topK,
    topP,
    minP,
    yieldEogToken: true,
    ...(seed === undefined ? {} : { seed }),
    ...(repeatPenalty === 1 ? {} : { repeatPenalty: { penalty: repeatPenalty, punishTokens: last } }),
  };
}

/** Converts tokens to text. A character may need several tokens, and the space before a word depends on the previous tokens. */
function createTokenText(model: NativeModel): { push(token: Token): string; last(): Token[] } {
  const decoded: Token[] = [];
  let pending: Token[] = [];
  return {
    push(token) {
      pending.push(token);
      const text = model.detokenize(pending, false, decoded.slice(-8));
      if (text.endsWith('\uFFFD') && pending.length < MAX_PENDING_TOKENS) return '';
      decoded.push(...pending);
      if (decoded.length > 256) decoded.splice(0, decoded.length - 64);
      pending = [];
      return text;
    },
    last: () => decoded.slice(-64),
  };
}

async function embedOn(embedder: NativeEmbedder, inputs: readonly Token[][], context: number, signal: AbortSignal) {
  const vectors: (readonly number[])[] = [];
  let tokens = 0;
  for (const input of inputs) {
    if (signal.aborted) return ABORTED;
    const length = embedder.calculateInputLength(input);
    if (length >= context) return tooLong(length, context);
    tokens += length;
    vectors.push(normalise((await embedder.getEmbeddingFor(input)).vector));
  }
  return { ok: true, value: { vectors, tokens } } as const;
}

/** Returns logits, like llama-server. The library returns probabilities. */
async function rankOn(ranker: NativeRanker, query: string, documents: readonly string[], signal: AbortSignal) {
  const scores: number[] = [];
  for (const document of documents) {
    if (signal.aborted) return ABORTED;
    const probability = await ranker.rank(query, document);
    scores.push(Math.log(probability / (1 - probability)));
  }
  return { ok: true, value: scores } as const;
}

function normalise(vector: readonly number[]): readonly number[] {
  const length = Math.hypot(...vector);
  return length === 0 ? vector : vector.map((value) => value / length);
}

function tokensOf(model: NativeModel, input: TextInput): Token[] {
  if (typeof input !== 'string') return [...input];
  const tokens = model.tokenize(input, true);
  const { bos, shouldPrependBosToken } = model.tokens;
  if (shouldPrependBosToken && bos !== null && tokens[0] !== bos) tokens.unshift(bos);
  return tokens;
}

function tooLong(tokens: number, context: number) {
  const message = `Shorten the request or start the server with a larger "--ctx-size": it has ${tokens} tokens, and the context has ${context}`;
  return {
    ok: false,
    refusal: { status: 400, type: 'exceed_context_size_error', message, extra: { n_prompt_tokens: tokens, n_ctx: context } },
  } as const;
}

function toOutcome<T>(done: Outcome<T> | 'full' | 'aborted') {
  if (done === 'full') return FULL;
  return done === 'aborted' ? ABORTED : done;
}
