/**
 * Serves `/v1/images/generations` and `/v1/images/edits` with ComfyUI, which has a queue of workflows:
 *
 *   parameters ─► workflow ─► WebSocket ─► POST /prompt ─► events, and GET /history/<id> at their end ─► GET /view for each image ─► the answer
 *                                                            └─► previews, if the client wants them
 *
 * A client that leaves has its own workflow removed from the queue, or interrupted. ComfyUI must be asked for both, as it may begin with the workflow in between.
 */
import type { ModelFacts } from '../provider.ts';
import { ask, listen, onLeave } from '../translation-steps.ts';
import type { Steps, TranslatableRequest, Translate, TranslationEnd, UpstreamRequest } from '../translation.ts';
import { answerWith } from './answer-images.ts';
import { awaitJob, type OnPreview } from './await-job.ts';
import { buildWorkflow } from './decide/build-workflow.ts';
import { parseQueued, parseRefusal, type SavedImage } from './decide/comfy-answers.ts';
import { describeExecutionError, describeRefusal, imageFailed, type Drawing } from './decide/describe-failure.ts';
import { FAMILIES } from './decide/image-families.ts';
import { imageModel, placeOf } from './decide/image-model.ts';
import { readParameters } from './decide/image-parameters.ts';
import { jobNames } from './decide/job-names.ts';
import { workflowJson, type Workflow } from './decide/workflow-graph.ts';
import { createImageStream } from './stream-images.ts';
import { uploadImages } from './upload-images.ts';

export function translateGeneration(model: ModelFacts | undefined): Translate {
  return (request) => translateImages(request, model, 'image_generation');
}

/** Serves `/v1/images/edits`: the image is put into the input directory of the server, where its workflow reads it. */
export function translateEdit(model: ModelFacts | undefined): Translate {
  return (request) => translateImages(request, model, 'image_edit');
}

function* translateImages(
  request: TranslatableRequest,
  model: ModelFacts | undefined,
  events: 'image_generation' | 'image_edit',
): Steps<TranslationEnd> {
  const known = model === undefined ? undefined : imageModel(model);
  if (model === undefined || known === undefined)
    return imageFailed('Send the request again in a moment: the model of the slot is not known yet');
  const read = readParameters(request.body, known.family);
  if (!read.ok) return { kind: 'refuse', ...read.problem };
  const names = jobNames(request.boundary);
  const upload = events === 'image_edit' ? yield* uploadImages(request, names.id, { family: known.family, ...read.parameters }) : undefined;
  if (upload !== undefined && 'kind' in upload) return upload;
  const parameters = upload === undefined ? read.parameters : { ...read.parameters, size: upload.size };
  const checkpoint = placeOf(model.hostPath).name;
  const { name, workflow } = buildWorkflow({
    model: known,
    checkpoint,
    parameters,
    seed: parameters.seed ?? names.seed,
    filenamePrefix: names.filenamePrefix,
    source: upload?.source,
  });
  const { side, multiple } = FAMILIES[known.family];
  const { width, height } = parameters.size ?? { width: side, height: side };
  const hal0 = { workflow: name, checkpoint: checkpoint.slice(checkpoint.lastIndexOf('/') + 1) };
  const facts = { created: request.receivedAt, hal0 };
  const stream = parameters.stream ? createImageStream(parameters, { ...facts, size: `${width}x${height}`, events }) : undefined;
  const job = { id: names.id, workflow, drawing: { model: model.id, width, height, multiple, n: parameters.n } };
  const done = yield* drawImages(job, stream?.onPreview);
  if ('kind' in done) return done;
  return yield* stream === undefined ? answerWith(done.images, parameters, facts) : stream.complete(done.images);
}

interface DrawingJob {
  readonly id: string;
  readonly workflow: Workflow;
  readonly drawing: Drawing;
}

/** Queues a workflow and waits for its images. */
function* drawImages(
  { id, workflow, drawing }: DrawingJob,
  onPreview?: OnPreview,
): Steps<{ readonly images: readonly SavedImage[] } | TranslationEnd> {
  // Before the workflow is sent: a client may leave while it is on its way, and the first events come at once.
  yield* onLeave([postJson('/queue', { delete: [id] }), postJson('/interrupt', { prompt_id: id })]);
  yield* listen(`/ws?clientId=${id}`);
  const body = `{"prompt":${workflowJson(workflow)},"prompt_id":"${id}","client_id":"${id}"}`;
  const queued = yield* ask({ method: 'POST', path: '/prompt', headers: JSON_BODY, body, mustFinish: true });
  if (queued.status === 503) return { kind: 'upstream-error', answer: queued };
  if (!parseQueued(queued)) return describeRefusal(parseRefusal(queued), drawing);
  const outcome = yield* awaitJob(id, onPreview);
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

const JSON_BODY = { 'content-type': 'application/json' };

function postJson(path: string, body: object): UpstreamRequest {
  return { method: 'POST', path, headers: JSON_BODY, body: JSON.stringify(body) };
}
