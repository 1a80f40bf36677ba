/** One case of an evaluation: a request, and what its answer must satisfy. */
import { z } from 'zod';
import { boundedRecord, optional, table } from '../pod/kube-fields.ts';
import { isTable } from '../words/key-case.ts';
import { quoted } from './spec-problem.ts';

const TEXT = ['contains', 'matches', 'schema', 'similar'] as const;

/** Paths of requests: the keys that a request needs, and what may be expected of its answer. */
const PATHS = {
  '/v1/chat/completions': { needs: ['messages'], expects: [...TEXT, 'tool'] },
  '/v1/completions': { needs: ['prompt'], expects: TEXT },
  '/v1/embeddings': { needs: ['input'], expects: ['dimension'] },
  '/v1/rerank': { needs: ['query', 'documents'], expects: ['best'] },
  '/v1/audio/speech': { needs: ['input'], expects: ['transcript'] },
  '/v1/audio/transcriptions': { needs: ['file'], expects: [...TEXT, 'transcript'] },
  '/v1/images/generations': { needs: ['prompt'], expects: ['image'] },
} as const satisfies Readonly<Record<string, { readonly needs: readonly string[]; readonly expects: readonly string[] }>>;

export type EvaluationPath = keyof typeof PATHS;
const isPath = (path: unknown): path is EvaluationPath => typeof path === 'string' && Object.hasOwn(PATHS, path);

/** The path of a request; undefined if cases cannot have it. */
export function pathOf({ path = '/v1/chat/completions' }: Readonly<Record<string, unknown>>): EvaluationPath | undefined {
  return isPath(path) ? path : undefined;
}

/** Bytes of a request or a JSON Schema. With its longest list of cases, a slot still fits into the 1.5 MiB of etcd. */
const MOST_BYTES = 16_384;
const MOST_LEVELS = 16;
/** Levels of a case above those of a request or a JSON Schema: `expect.tool.arguments`. */
export const CASE_LEVELS = MOST_LEVELS + 3;

const Json = boundedRecord(z.unknown(), 100).superRefine((value, { addIssue }) => {
  if (!isFlat(value, MOST_LEVELS)) addIssue({ code: 'custom', message: `Use at most ${MOST_LEVELS} levels of lists and tables` });
  else if (new TextEncoder().encode(JSON.stringify(value)).length > MOST_BYTES)
    addIssue({ code: 'custom', message: `Use at most ${MOST_BYTES} bytes as JSON` });
});

/** Looks no deeper than it must. */
export const isFlat = (value: unknown, levels: number): boolean =>
  (!Array.isArray(value) && !isTable(value)) || (levels > 0 && Object.values(value).every((each) => isFlat(each, levels - 1)));

const Text = z.string().min(1).max(10_000);

const Expectations = z.strictObject({
  contains: optional('Text that the answer contains, in the same case', Text),
  matches: optional('Pattern in the syntax of RE2 that matches a part of the answer', z.string().min(1).max(1000)),
  schema: optional('JSON Schema (2020-12) that the answer satisfies, which is then JSON and nothing else. Without "$ref"', Json),
  tool: table('Call of a tool that the answer contains', {
    name: z.string().min(1).max(200).describe('Name of the tool'),
    arguments: optional('Arguments that the call has, among others', Json),
  }),
  similar: table('Meaning of the answer, compared by the slot "embed"', {
    to: Text.describe('Text with the expected meaning'),
    atLeast: z.number().min(-1).max(1).describe('Least cosine of the angle between the embeddings of both'),
  }),
  dimension: optional('Length of each embedding', z.int().min(1).max(65_536)),
  best: optional('Index of the document that is ranked first', z.int().min(0).max(1000)),
  transcript: table('Words of the recording, or of the speech, which the slot "stt" writes down', {
    reference: Text.describe('The words'),
    atMost: z.number().min(0).max(1).describe('Highest word error rate: words that are wrong, missing or too many, for each word'),
  }),
  image: table('Images: not blank, and of this size', {
    width: optional('Pixels. Default: any', z.int().min(1).max(16_384)),
    height: optional('Pixels. Default: any', z.int().min(1).max(16_384)),
  }),
});

export const evaluationCaseSchema = z
  .strictObject({
    request: Json.describe('Body of the request, without "model" and "stream". "path": its path. Default: "/v1/chat/completions"'),
    expect: Expectations.describe('What the answer satisfies: at least one expectation'),
    required: optional('Whether the evaluation fails if this case does, whatever share of the others passes. Default: false', z.boolean()),
  })
  .superRefine((value, { addIssue }) => {
    for (const { path, message } of problemsWith(value)) addIssue({ code: 'custom', path, message });
  });

export type EvaluationCase = Readonly<z.infer<typeof evaluationCaseSchema>>;
export type Expectations = Readonly<z.infer<typeof Expectations>>;

function problemsWith({ request, expect }: { readonly request: Readonly<Record<string, unknown>>; readonly expect: Expectations }) {
  const path = pathOf(request);
  if (path === undefined) return [{ path: ['request', 'path'], message: `Use one of ${quoted(Object.keys(PATHS))}` }];
  const { needs, expects }: { readonly needs: readonly string[]; readonly expects: readonly string[] } = PATHS[path];
  const unfit = Object.keys(expect).filter((key) => !expects.includes(key));
  const fixed = ['model', 'stream', 'stream_options'].filter((key) => Object.hasOwn(request, key));
  const isUnread = path === '/v1/audio/transcriptions' && typeof (request['file'] ?? '') !== 'string';
  return [
    ...(isUnread ? [{ path: ['request', 'file'], message: 'Write the path of a recording' }] : []),
    ...needs
      .filter((key) => !Object.hasOwn(request, key))
      .map((key) => ({ path: ['request'], message: `Add "${key}", which a request to "${path}" needs, or set another "path"` })),
    ...fixed.map((key) => ({ path: ['request'], message: `Remove "${key}": the evaluation sets it` })),
    ...unfit.map((key) => ({ path: ['expect'], message: `Remove "${key}": answers of "${path}" can be compared with ${quoted(expects)}` })),
    ...(Object.keys(expect).length === 0 ? [{ path: ['expect'], message: `Add an expectation: one of ${quoted(expects)}` }] : []),
  ];
}

/** A case that an answer did not meet, by its position from 1. Texts have at most 300 characters. */
export const Miss = z.object({
  case: z.int(),
  required: z.boolean(),
  question: z.string(),
  expectation: z.string(),
  answer: z.string(),
});

const Counts = z.object({ cases: z.int(), passed: z.int() });
/** How many cases a model has passed. `before`: the former one; null if it was not compared. */
export const Score = Counts.extend({ before: Counts.nullable() });

/** `rolled_back`: the text before is in force. `held`: the new model stays loaded without requests. */
export const FailedRollout = z
  .object({
    outcome: z.enum(['rolled_back', 'held']),
    because: z.string(),
    misses: z.array(Miss).max(10),
    score: Score.nullable().describe('Null if the model has answered no cases'),
  })
  .describe('Why the model of the last edit gets no requests; null where it does');
export type FailedRollout = Readonly<z.output<typeof FailedRollout>>;
