/**
 * Runs evaluation cases, one after the other: a model that answers several at once would be slower for each. Where the
 * requests go is the caller's choice.
 */
import { createLineSplitter, readBeginning } from '../platform/read-body.ts';
import { parseJson } from '../platform/decide/parse-json.ts';
import { messageOf } from '../platform/error-text.ts';
import { pathOf, type EvaluationCase, type EvaluationPath } from '../schema/slot/evaluation-case.ts';
import { shorten } from '../schema/words/nearest-word.ts';
import { isTable } from '../schema/words/key-case.ts';
import { cosine, unmetExpectations, type Judged } from './decide/judge-expectations.ts';
import { addLine, errorText, NOTHING, readWhole, type Answered } from './decide/read-answer.ts';
import { sumUp, type CaseResult, type EvaluationReport } from './decide/evaluation-report.ts';
import { lookAtImage } from './look-at-image.ts';

export interface ModelRequest {
  readonly path: EvaluationPath;
  /** Another slot, which helps to judge an answer. Default: what is evaluated. */
  readonly slot?: 'embed' | 'stt';
  /** Without `model`. */
  readonly body: Readonly<Record<string, unknown>>;
  /** A recording; the keys of the body are the other fields of a form then. */
  readonly file?: Recording;
}

export interface Recording {
  readonly name: string;
  readonly bytes: Buffer;
}

export interface Answer {
  readonly status: number;
  /** The header. */
  readonly contentType: string | undefined;
  /** Is read once, to its end or until the answer is too long. */
  readonly body: AsyncIterable<Buffer>;
}

/** Resolves once the head of an answer is there. A rejection ends the evaluation. */
export type AskModel = (request: ModelRequest, signal: AbortSignal) => Promise<Answer>;

export interface RunOptions {
  readonly signal: AbortSignal;
  /** Reads the recording that a case names. Absent where there is no folder with recordings. */
  readonly readRecording?: (file: string) => Promise<Recording>;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
  /** Called after each case. */
  readonly onResult?: (result: CaseResult) => void;
}

/** Returns the content of a request for a slot or a model: JSON, or a form whose recording comes last. */
export async function encodeRequest({ body, file, slot }: ModelRequest, model: string) {
  const asked = { model: slot ?? model, ...body };
  if (file === undefined) return { type: 'application/json', bytes: Buffer.from(JSON.stringify(asked)) };
  const form = new FormData();
  for (const [key, value] of Object.entries(asked)) form.append(key, typeof value === 'string' ? value : JSON.stringify(value));
  form.append('file', new Blob([new Uint8Array(file.bytes)]), file.name);
  const encoded = new Response(form);
  return { type: encoded.headers.get('content-type') ?? '', bytes: Buffer.from(await encoded.arrayBuffer()) };
}

/** Rejects if the signal aborts, or if a model cannot be asked. Whatever is wrong with an answer is a miss. */
export async function runCases(cases: readonly EvaluationCase[], ask: AskModel, options: RunOptions): Promise<EvaluationReport> {
  const results: CaseResult[] = [];
  for (const [index, each] of cases.entries()) {
    options.signal.throwIfAborted();
    const result = await runCase(each, index + 1, ask, options);
    options.onResult?.(result);
    results.push(result);
  }
  return sumUp(results);
}

const SHOWN_CHARACTERS = 300;

async function runCase(given: EvaluationCase, number: number, ask: AskModel, options: RunOptions): Promise<CaseResult> {
  const { request, expect, required = false } = given;
  const { answered, sound, ...times } = await answerOf(await requestOf(request, options), ask, options);
  const { heard, similarity, problem } = await compare(expect, { answered, sound }, ask, options);
  const seen = await Promise.all(answered.images.map((image) => lookAtImage(Buffer.from(image, 'base64'))));
  const judged: Judged = { ...answered, similarity, heard, seen };
  const unmet = problem === undefined ? unmetExpectations(expect, judged) : [`is answered: ${problem}`];
  const miss = {
    case: number,
    required,
    question: shorten(questionOf(request), SHOWN_CHARACTERS),
    expectation: shorten(unmet.join('; '), SHOWN_CHARACTERS),
    answer: shorten(answerText(judged), SHOWN_CHARACTERS),
  };
  return { ...times, outputTokens: answered.outputTokens, miss: unmet.length === 0 ? undefined : miss };
}

/** An answer is the same each time, as far as a model can make it so, and ends. What a case says itself stays. */
const REPEATABLE = { temperature: 0, seed: 1 };
const MOST_TOKENS = 1024;
const STREAM = { stream: true, stream_options: { include_usage: true } };

async function requestOf(given: EvaluationCase['request'], { readRecording }: RunOptions): Promise<ModelRequest> {
  const { path: _path, ...body } = given;
  const path = pathOf(given);
  if (path === undefined) throw new Error('A case has a path that its schema does not allow');
  if (path === '/v1/audio/transcriptions') {
    const { file, ...fields } = body;
    if (readRecording === undefined) throw new Error('Recordings cannot be read here');
    return { path, body: fields, file: await readRecording(String(file)) };
  }
  if (path !== '/v1/chat/completions' && path !== '/v1/completions') return { path, body };
  const limit = Object.hasOwn(body, 'max_completion_tokens') ? {} : { max_tokens: MOST_TOKENS };
  return { path, body: { ...REPEATABLE, ...limit, ...body, ...STREAM } };
}

interface Heard extends Pick<CaseResult, 'ms' | 'firstTokenMs'> {
  readonly answered: Answered;
  readonly sound?: Buffer | undefined;
}

/** Images in Base64, and sound, have some megabytes. */
const MOST_BYTES = 32 * 2 ** 20;

async function answerOf(request: ModelRequest, ask: AskModel, { signal, now = () => performance.now() }: RunOptions): Promise<Heard> {
  const began = now();
  const answer = await ask(request, signal);
  const isStream = answer.status === 200 && answer.contentType?.startsWith('text/event-stream') === true;
  try {
    if (isStream) return await followStream(answer, began, now);
    const bytes = await readBeginning(answer.body, MOST_BYTES + 1);
    const ms = now() - began;
    if (bytes.length > MOST_BYTES) return failed(`the answer has more than ${MOST_BYTES / 2 ** 20} MiB`, ms);
    if (request.path === '/v1/audio/speech' && answer.status === 200) return { answered: NOTHING, sound: bytes, ms };
    const text = bytes.toString('utf8');
    if (answer.status !== 200) return failed(`status ${answer.status}: ${errorText(parseJson(text))}`, ms);
    return { answered: readWhole(request.path, text), ms };
  } catch (error) {
    signal.throwIfAborted();
    return failed(`the answer was cut: ${messageOf(error)}`, now() - began);
  }
}

const failed = (problem: string, ms: number): Heard => ({ answered: { ...NOTHING, problem }, ms });

async function followStream({ body }: Answer, began: number, now: () => number): Promise<Heard> {
  const splitter = createLineSplitter(MOST_BYTES);
  let [answered, bytes]: [Answered, number] = [NOTHING, 0];
  let firstTokenMs: number | undefined;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) return failed(`the answer has more than ${MOST_BYTES / 2 ** 20} MiB`, now() - began);
    answered = splitter.push(chunk).reduce(addLine, answered);
    if (answered.hasBegun) firstTokenMs ??= now() - began;
  }
  answered = addLine(answered, splitter.end() ?? '');
  return { answered, ms: now() - began, firstTokenMs };
}

interface Comparison {
  readonly similarity?: number;
  readonly heard?: string;
  readonly problem?: string | undefined;
}

/** Asks the slots that help to judge. */
async function compare(
  { similar, transcript }: EvaluationCase['expect'],
  { answered, sound }: Pick<Heard, 'answered' | 'sound'>,
  ask: AskModel,
  options: RunOptions,
): Promise<Comparison> {
  if (answered.problem !== undefined) return { problem: answered.problem };
  if (transcript !== undefined && sound !== undefined) {
    const file = { name: 'speech', bytes: sound };
    const { answered: written } = await answerOf({ path: '/v1/audio/transcriptions', slot: 'stt', body: {}, file }, ask, options);
    return written.problem === undefined
      ? { heard: written.text }
      : { problem: `the slot "stt" could not write down the speech: ${written.problem}` };
  }
  if (similar === undefined || answered.text.trim() === '') return {};
  const body = { input: [answered.text, similar.to] };
  const { answered: compared } = await answerOf({ path: '/v1/embeddings', slot: 'embed', body }, ask, options);
  const [one, other] = compared.vectors;
  if (one !== undefined && other !== undefined) return { similarity: cosine(one, other) };
  return { problem: `the slot "embed" could not compare the answer: ${compared.problem ?? 'it sent no two embeddings'}` };
}

/** The last message, or else what the request is about. */
function questionOf({ messages, ...request }: EvaluationCase['request']): string {
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : undefined;
  const question = isTable(last) ? last['content'] : (request['prompt'] ?? request['query'] ?? request['input'] ?? request['file']);
  return typeof question === 'string' ? question : JSON.stringify(question ?? request);
}

function answerText({ problem, text, heard, calls, vectors, ranking, images }: Judged): string {
  if (problem !== undefined) return '';
  const called = calls.map(({ name, arguments: given }) => `${name}(${given})`).join(', ');
  const spoken = [text, heard ?? '', called].filter((part) => part !== '').join(' ');
  if (spoken !== '') return spoken;
  const counts = [
    vectors.length === 0 ? '' : `${vectors.length} embeddings`,
    ranking.length === 0 ? '' : `ranking ${ranking.join(', ')}`,
    images.length === 0 ? '' : `${images.length} images`,
  ];
  return counts.filter((part) => part !== '').join(', ');
}
