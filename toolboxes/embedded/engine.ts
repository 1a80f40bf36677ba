/** The model, loaded: text in, text, vectors or scores out. Knows nothing of HTTP. */
import { availableParallelism } from 'node:os';
import { createStopText } from './decide/stop-text.ts';
import type { Flags } from './decide/parse-flags.ts';
import { refuse, type Message, type Read, type Sampling, type TextInput } from './decide/read-request.ts';
import type { FinishReason, Usage } from './decide/write-reply.ts';
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
  prompt(messages: readonly Message[]): Promise<Read<TextInput>>;
  /** `onText` gets each piece as soon as it is certain; waiting on its answer is the back-pressure. */
  generate(prompt: TextInput, sampling: Sampling, onText: (text: string) => Promise<void>, signal: AbortSignal): Promise<Read<Generated>>;
  embed(
    inputs: readonly TextInput[],
    signal: AbortSignal,
  ): Promise<Read<{ readonly vectors: readonly (readonly number[])[]; readonly tokens: number }>>;
  rerank(
    query: string,
    documents: readonly string[],
    signal: AbortSignal,
  ): Promise<Read<{ readonly scores: readonly number[]; readonly tokens: number }>>;
  tokenize(text: string, special: boolean): readonly number[];
}

/** A context that nobody asked for is not made larger: on a processor a long one costs memory and is rarely filled. */
const DEFAULT_CONTEXT = 8192;
/** A context this small may be had several times over, one for each of the requests served at once. */
const CHEAP_CONTEXT = 16_384;
const MAX_WAITING = 256;
/** More tokens than the bytes of the longest character: a piece that still is not text then never will be. */
const MAX_PENDING_TOKENS = 8;
const CHATML =
  '{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}';

const ABORTED = refuse(499, 'server_error', 'The client left');
const FULL = refuse(503, 'unavailable_error', `More than ${MAX_WAITING} requests are waiting; try again later`);

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
 * A context of its own for each request served at once. One context could hold several sequences, but then one request now and then gets
 * a token of another: the library samples them on several threads from logits they share.
 */
async function createSequence(model: NativeModel, size: Size): Promise<NativeSequence> {
  return (await model.createContext({ ...size, sequences: 1 })).getSequence();
}

/** After the first one, which is enough to answer. */
async function addSequences(model: NativeModel, size: Size, count: number, queue: WorkQueue<NativeSequence>): Promise<void> {
  try {
    for (let added = 0; added < count; added += 1) queue.add(await createSequence(model, size));
  } catch (error) {
    process.stderr.write(
      `warning: There is no room to serve more requests at once: ${error instanceof Error ? error.message : String(error)}\n`,
    );
  }
}

interface Seats {
  readonly sequences?: WorkQueue<NativeSequence>;
  readonly embedder?: WorkQueue<NativeEmbedder>;
  readonly ranker?: WorkQueue<NativeRanker>;
}

function createEngine(model: NativeModel, context: number, seats: Seats, modulesDir: string): Engine {
  let template: Promise<ChatTemplate> | undefined;
  const tokens = (input: TextInput): Token[] => tokensOf(model, input);
  return {
    context,
    async prompt(messages) {
      const source = model.fileInfo.metadata.tokenizer?.chat_template;
      template ??= loadTemplate(modulesDir, typeof source === 'string' ? source : CHATML);
      try {
        const text = (await template).render({
          messages,
          add_generation_prompt: true,
          bos_token: model.tokens.bosString ?? '',
          eos_token: model.tokens.eosString ?? '',
        });
        return { ok: true, value: text };
      } catch (error) {
        return refuse(400, 'invalid_request_error', `The model's chat template refuses these messages: ${String(error)}`);
      }
    },
    async generate(input, sampling, onText, signal) {
      if (seats.sequences === undefined) return refuse(501, 'not_supported_error', 'This server was not started for text generation');
      const prompt = tokens(input);
      if (prompt.length >= context) return tooLong(prompt.length, context);
      const done = await seats.sequences.run((sequence) => generateOn(model, sequence, prompt, sampling, onText, signal), signal);
      return settle(done);
    },
    async embed(inputs, signal) {
      if (seats.embedder === undefined)
        return refuse(501, 'not_supported_error', 'This server does not support embeddings. Start it with `--embeddings`');
      const done = await seats.embedder.run((embedder) => embedOn(embedder, inputs.map(tokens), context, signal), signal);
      return settle(done);
    },
    async rerank(query, documents, signal) {
      if (seats.ranker === undefined)
        return refuse(501, 'not_supported_error', 'This server does not support reranking. Start it with `--reranking`');
      const length = (text: string): number => model.tokenize(text, false).length;
      const most = length(query) + Math.max(...documents.map(length)) + 4;
      if (most >= context) return tooLong(most, context);
      const done = await seats.ranker.run((ranker) => rankOn(ranker, query, documents, signal), signal);
      if (done === 'full' || done === 'aborted' || !done.ok) return settle(done);
      return {
        ok: true,
        value: { scores: done.value, tokens: documents.reduce((sum, text) => sum + length(query) + length(text) + 4, 0) },
      };
    },
    tokenize: (text, special) => (special ? tokens(text) : model.tokenize(text, true)),
  };
}

async function generateOn(
  model: NativeModel,
  sequence: NativeSequence,
  prompt: Token[],
  sampling: Sampling,
  onText: (text: string) => Promise<void>,
  signal: AbortSignal,
): Promise<Read<Generated>> {
  // what the sequence still knows of an earlier turn need not be read again; the last token must be, for it is what is answered
  await sequence.adaptStateToTokens(prompt.slice(0, -1), false);
  const cachedTokens = sequence.nextTokenIndex;
  const limit = Math.min(sampling.maxTokens ?? Number.POSITIVE_INFINITY, sequence.contextSize - prompt.length);
  const stop = createStopText(sampling.stop);
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

/** Tokens to text: a character may need several tokens, and a word's space depends on the token before. */
function createTokenText(model: NativeModel): { push(token: Token): string; last(): Token[] } {
  const told: Token[] = [];
  let pending: Token[] = [];
  return {
    push(token) {
      pending.push(token);
      const text = model.detokenize(pending, false, told.slice(-8));
      if (text.endsWith('\uFFFD') && pending.length < MAX_PENDING_TOKENS) return '';
      told.push(...pending);
      if (told.length > 256) told.splice(0, told.length - 64);
      pending = [];
      return text;
    },
    last: () => told.slice(-64),
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

/** The library answers probabilities; llama-server answers what they were made of. */
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
  const message = `The request has ${tokens} tokens, more than the context of ${context}; shorten it or start the server with a larger "--ctx-size"`;
  return {
    ok: false,
    refusal: { status: 400, type: 'exceed_context_size_error', message, extra: { n_prompt_tokens: tokens, n_ctx: context } },
  } as const;
}

function settle<T>(done: Read<T> | 'full' | 'aborted') {
  if (done === 'full') return FULL;
  return done === 'aborted' ? ABORTED : done;
}
