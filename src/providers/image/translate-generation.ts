/**
 * Serves `/v1/images/generations` with ComfyUI, which has a queue of workflows:
 *
 *   parameters ─► workflow ─► POST /prompt ─► GET /history/<id>, again and again ─► GET /view for each image ─► the answer
 *
 * A client that leaves has its own workflow removed from the queue, or interrupted. ComfyUI must be asked for both, as it may begin with the workflow in between.
 */
import type { ModelFacts } from '../provider.ts';
import { ask, askBriefly, begin, keepImage, nextBytes, onLeave, open, wait, write } from '../translation-steps.ts';
import type { Steps, Translate, TranslationEnd, UpstreamRequest } from '../translation.ts';
import { buildWorkflow, SAVE_NODE } from './decide/build-workflow.ts';
import { isQueued, parseHistory, parseQueued, parseRefusal, type JobOutcome, type SavedImage } from './decide/comfy-answers.ts';
import { describeExecutionError, describeRefusal, imageFailed, type Drawing } from './decide/describe-failure.ts';
import { base64, beginsAs, concat, encodePiece, endsAs, MAGIC_BYTES } from './decide/image-bytes.ts';
import { FAMILIES } from './decide/image-families.ts';
import { imageModel, placeOf } from './decide/image-model.ts';
import { readParameters, type ImageParameters } from './decide/image-parameters.ts';
import { jobNames } from './decide/job-names.ts';
import { workflowJson, type Workflow } from './decide/workflow-graph.ts';

/** Of one image. */
const MOST_IMAGE_BYTES = 64 * 1024 * 1024;
/** An answer to `/queue` contains every workflow that waits. */
const MOST_QUEUE_BYTES = 64 * 1024 * 1024;
/** How often history is asked for, by how long the request waits: an image of two seconds is noticed within 50 ms, and a long queue is asked rarely. */
const PACE = [
  { untilMs: 4000, everyMs: 40 },
  { untilMs: 30_000, everyMs: 200 },
] as const;
const SLOW_PACE_MS = 500;
/** A server that was restarted has forgotten the job. */
const CHECK_QUEUE_EVERY_MS = 5000;
/** A job leaves the queue a moment before it enters history. */
const MOST_MISSES = 2;

export function translateGeneration(model: ModelFacts | undefined): Translate {
  return function* run(request) {
    const known = model === undefined ? undefined : imageModel(model);
    if (model === undefined || known === undefined)
      return imageFailed('Send the request again in a moment: the model of the slot is not known yet');
    const read = readParameters(request.body, known.family);
    if (!read.ok) return { kind: 'refuse', ...read.problem };
    const { parameters } = read;
    const names = jobNames(request.boundary);
    const checkpoint = placeOf(model.hostPath).name;
    const { filenamePrefix } = names;
    const { name, workflow } = buildWorkflow({ model: known, checkpoint, parameters, seed: parameters.seed ?? names.seed, filenamePrefix });
    const { side, multiple } = FAMILIES[known.family];
    const { width, height } = parameters.size ?? { width: side, height: side };
    const drawing: Drawing = { model: model.id, width, height, multiple, n: parameters.n };
    const done = yield* drawImages(names.id, workflow, drawing);
    if ('kind' in done) return done;
    const hal0 = { workflow: name, checkpoint: checkpoint.slice(checkpoint.lastIndexOf('/') + 1) };
    return yield* answerWith(done.images, parameters, { created: request.receivedAt, hal0 });
  };
}

/** Queues a workflow and waits for its images. */
function* drawImages(id: string, workflow: Workflow, drawing: Drawing): Steps<{ readonly images: readonly SavedImage[] } | TranslationEnd> {
  // Before the workflow is sent: a client may leave while it is on its way.
  yield* onLeave([postJson('/queue', { delete: [id] }), postJson('/interrupt', { prompt_id: id })]);
  const body = `{"prompt":${workflowJson(workflow)},"prompt_id":"${id}","client_id":"${id}"}`;
  const queued = yield* ask({ method: 'POST', path: '/prompt', headers: JSON_BODY, body, mustFinish: true });
  if (queued.status === 503) return { kind: 'upstream-error', answer: queued };
  if (!parseQueued(queued)) return describeRefusal(parseRefusal(queued), drawing);
  const outcome = yield* awaitOutcome(id);
  // History keeps the prompts of everyone, and nobody else asks for this one.
  if (outcome.kind !== 'unknown') yield* ask(postJson('/history', { delete: [id] }));
  switch (outcome.kind) {
    case 'done':
      return { images: outcome.images };
    case 'failed':
      return describeExecutionError(outcome.error, drawing);
    case 'interrupted':
      return imageFailed('Send the request again: somebody interrupted it at the image server');
    case 'unknown':
      return imageFailed('Send the request again: the image server was restarted, and has lost it');
    case 'broken':
      return imageFailed('Read the log of the slot: the image server does not say what became of the request');
    default:
      return outcome satisfies never;
  }
}

/** `unknown`: the server has lost the job. */
function* awaitOutcome(id: string): Steps<JobOutcome> {
  let waitedMs = 0;
  let checkedMs = 0;
  let misses = 0;
  for (;;) {
    const outcome = parseHistory(yield* askBriefly({ method: 'GET', path: `/history/${id}` }, MOST_QUEUE_BYTES), id, SAVE_NODE);
    if (outcome.kind !== 'unknown' || misses > MOST_MISSES) return outcome;
    const pauseMs = PACE.find(({ untilMs }) => waitedMs < untilMs)?.everyMs ?? SLOW_PACE_MS;
    yield* wait(pauseMs);
    waitedMs += pauseMs;
    if (waitedMs - checkedMs < CHECK_QUEUE_EVERY_MS && misses === 0) continue;
    checkedMs = waitedMs;
    const queued = isQueued(yield* askBriefly({ method: 'GET', path: '/queue' }, MOST_QUEUE_BYTES), id);
    misses = queued === true ? 0 : misses + 1;
  }
}

interface AnswerFacts {
  /** Unix seconds. */
  readonly created: number;
  /** For debugging: `_hal0` of the answer. */
  readonly hal0: { readonly workflow: string; readonly checkpoint: string };
}

function answerWith(images: readonly SavedImage[], parameters: ImageParameters, facts: AnswerFacts): Steps<TranslationEnd> {
  if (parameters.responseFormat === 'url') return answerWithUrls(images, facts);
  const [first] = images;
  return images.length === 1 && first !== undefined ? answerWithOne(first, parameters, facts) : answerInPieces(images, parameters, facts);
}

function* answerWithUrls(images: readonly SavedImage[], { created, hal0 }: AnswerFacts): Steps<TranslationEnd> {
  const data: { readonly url: string }[] = [];
  for (const image of images) {
    const kept = yield* keepImage(viewOf(image));
    if (!kept.ok) return imageFailed(kept.problem);
    data.push({ url: kept.url });
  }
  return { kind: 'answer', status: 200, contentType: 'application/json', body: JSON.stringify({ created, data, _hal0: hal0 }) };
}

const NOT_AN_IMAGE = 'Read the log of the slot: the image server did not send an image that is complete';

/** An error is still possible until the image is complete. */
function* answerWithOne(image: SavedImage, parameters: ImageParameters, { created, hal0 }: AnswerFacts): Steps<TranslationEnd> {
  const { outputFormat } = parameters;
  const { status, body } = yield* ask(viewOf(image, parameters), MOST_IMAGE_BYTES);
  if (status !== 200 || !beginsAs(outputFormat, body) || !endsAs(outputFormat, body)) return imageFailed(NOT_AN_IMAGE);
  const text = `{"created":${created},"data":[{"b64_json":"${base64(body)}"}],"_hal0":${JSON.stringify(hal0)}}`;
  return { kind: 'answer', status: 200, contentType: 'application/json', body: text };
}

/** Passes several images on as they come, so that none of them is in memory as a whole. */
function* answerInPieces(
  images: readonly SavedImage[],
  parameters: ImageParameters,
  { created, hal0 }: AnswerFacts,
): Steps<TranslationEnd> {
  const { outputFormat } = parameters;
  for (const [index, image] of images.entries()) {
    const { status } = yield* open(viewOf(image, parameters));
    let last = yield* firstBytes();
    if (status !== 200 || !beginsAs(outputFormat, last)) return imageFailed(NOT_AN_IMAGE);
    if (index === 0) yield* begin({ status: 200, contentType: 'application/json' });
    yield* write(index === 0 ? `{"created":${created},"data":[{"b64_json":"` : ',{"b64_json":"');
    let { text, rest } = encodePiece(new Uint8Array(), last);
    yield* write(text);
    for (let bytes = yield* nextBytes(); bytes !== undefined; bytes = yield* nextBytes()) {
      ({ text, rest } = encodePiece(rest, bytes));
      if (text !== '') yield* write(text);
      last = concat(last.subarray(-MAGIC_BYTES), bytes);
    }
    if (!endsAs(outputFormat, last)) return imageFailed(NOT_AN_IMAGE);
    yield* write(`${base64(rest)}"}`);
  }
  yield* write(`],"_hal0":${JSON.stringify(hal0)}}`);
  return { kind: 'written' };
}

/** As many as tell what they are, if there are so many. */
function* firstBytes(): Steps<Uint8Array> {
  let bytes: Uint8Array = new Uint8Array();
  while (bytes.length < MAGIC_BYTES) {
    const more = yield* nextBytes();
    if (more === undefined) return bytes;
    bytes = concat(bytes, more);
  }
  return bytes;
}

/** Without parameters: the PNG as it was saved. */
function viewOf(
  { filename, subfolder, type }: SavedImage,
  parameters?: Pick<ImageParameters, 'outputFormat' | 'quality'>,
): UpstreamRequest {
  const query = new URLSearchParams({ filename, subfolder, type });
  if (parameters !== undefined && parameters.outputFormat !== 'png')
    query.set('preview', `${parameters.outputFormat};${parameters.quality}`);
  return { method: 'GET', path: `/view?${query.toString()}` };
}

const JSON_BODY = { 'content-type': 'application/json' };

function postJson(path: string, body: object): UpstreamRequest {
  return { method: 'POST', path, headers: JSON_BODY, body: JSON.stringify(body) };
}
