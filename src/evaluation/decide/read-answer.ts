/** Reads answers of the inference paths: whole ones, and streams of events line by line. Pure. */
import { parseJson } from '../../platform/decide/parse-json.ts';
import { tablesAt, valueAt } from '../../schema/pod/kube-fields.ts';
import type { EvaluationPath } from '../../schema/slot/evaluation-case.ts';
import { isTable } from '../../schema/words/key-case.ts';

export interface ToolCall {
  readonly name: string;
  /** JSON, as far as it has come. */
  readonly arguments: string;
}

/** What an answer says. */
export interface Answered {
  /** Why there is no answer to judge. */
  readonly problem?: string | undefined;
  /** Text without reasoning, or the words of a recording. */
  readonly text: string;
  readonly calls: readonly ToolCall[];
  /** Whether a token has come, also one of reasoning. */
  readonly hasBegun: boolean;
  readonly outputTokens?: number | undefined;
  readonly vectors: readonly (readonly number[])[];
  /** Indices of documents, the best first. */
  readonly ranking: readonly number[];
  /** In Base64. */
  readonly images: readonly string[];
}

export const NOTHING: Answered = { text: '', calls: [], hasBegun: false, vectors: [], ranking: [], images: [] };

const textAt = (value: unknown, ...path: readonly string[]): string => {
  const found = valueAt(value, ...path);
  return typeof found === 'string' ? found : '';
};

const numberAt = (value: unknown, ...path: readonly string[]): number | undefined => {
  const found = valueAt(value, ...path);
  return typeof found === 'number' ? found : undefined;
};

/** Adds a line of a stream of events. */
export function addLine(answered: Answered, line: string): Answered {
  const event = line.startsWith('data:') ? parseJson(line.slice('data:'.length)) : undefined;
  if (!isTable(event)) return answered;
  if (isTable(event['error'])) return { ...answered, problem: errorText(event) };
  const added = addChoice(answered, tablesAt(event, 'choices')[0], 'delta');
  return { ...added, outputTokens: tokensOf(event) ?? added.outputTokens };
}

/** `key` of the message in the choice. */
function addChoice(answered: Answered, choice: unknown, key: 'delta' | 'message'): Answered {
  const text = textAt(choice, key, 'content') || textAt(choice, 'text');
  const tools = tablesAt(choice, key, 'tool_calls');
  const thought = textAt(choice, key, 'reasoning_content') || textAt(choice, key, 'reasoning');
  return {
    ...answered,
    text: answered.text + text,
    calls: tools.reduce((calls, call, place) => addCall(calls, call, numberAt(call, 'index') ?? place), answered.calls),
    hasBegun: answered.hasBegun || text !== '' || thought !== '' || tools.length > 0,
  };
}

/** An answer has some calls. Servers count them without gaps. */
function addCall(calls: readonly ToolCall[], call: unknown, index: number): readonly ToolCall[] {
  const before = calls[index] ?? { name: '', arguments: '' };
  const after = {
    name: before.name + textAt(call, 'function', 'name'),
    arguments: before.arguments + textAt(call, 'function', 'arguments'),
  };
  return index < calls.length ? calls.with(index, after) : [...calls, after];
}

/** The count of OpenAI, or that of llama-server. */
const tokensOf = (json: unknown): number | undefined =>
  numberAt(json, 'usage', 'completion_tokens') ?? numberAt(json, 'timings', 'predicted_n');

/** The message of an error, as the gateway and all servers with OpenAI's API write it. */
export const errorText = (json: unknown): string => textAt(json, 'error', 'message') || 'it does not say why';

/** Reads a whole answer with status 200. Sound is no text, and not read here. */
export function readWhole(path: EvaluationPath, text: string): Answered {
  const json = parseJson(text);
  if (path === '/v1/audio/transcriptions') return { ...NOTHING, text: isTable(json) ? textAt(json, 'text') : text };
  if (!isTable(json)) return { ...NOTHING, problem: 'the answer is not JSON' };
  switch (path) {
    case '/v1/chat/completions':
    case '/v1/completions':
      return { ...addChoice(NOTHING, tablesAt(json, 'choices')[0], 'message'), outputTokens: tokensOf(json) };
    case '/v1/embeddings':
      return {
        ...NOTHING,
        vectors: tablesAt(json, 'data').map(({ embedding }) => (Array.isArray(embedding) ? embedding.map(Number) : [])),
      };
    case '/v1/rerank':
      return { ...NOTHING, ranking: rankingOf(json) };
    case '/v1/images/generations':
      return { ...NOTHING, images: tablesAt(json, 'data').map((image) => textAt(image, 'b64_json')) };
    case '/v1/audio/speech':
      return NOTHING;
    default:
      return path satisfies never;
  }
}

const rankingOf = (json: unknown): readonly number[] =>
  tablesAt(json, 'results')
    .toSorted((one, other) => Number(other['relevance_score']) - Number(one['relevance_score']))
    .map(({ index }) => Number(index));
