/**
 * Serves image requests with ComfyUI, which has a queue of workflows:
 *
 *   parameters ─► workflow ─► WebSocket ─► POST /prompt ─► events, then GET /history/<id> ─► GET /view ─► response
 *                                                            └─► previews, if wanted
 *
 * If a client leaves, its workflow is removed from the queue and interrupted: ComfyUI may begin it in between.
 */
import { createHash } from 'node:crypto';
import type { ModelFacts } from '../provider.ts';
import { ask, listen, onEnd, onLeave } from '../translation-steps.ts';
import type { Steps, TranslatableRequest, Translate, TranslationEnd, UpstreamRequest } from '../translation.ts';
import { answerWith } from './answer-images.ts';
import { awaitJob, createImageStream, type OnPreview } from './await-job.ts';
import { parseQueued, parseRefusal, type SavedImage } from './decide/comfy-answers.ts';
import { describeExecutionError, describeRefusal, imageFailed, type Drawing } from './decide/describe-failure.ts';
import { drawableOf, wrongPath } from './decide/drawable.ts';
import type { ImageTask } from './decide/image-parameters.ts';
import { uuidOf } from './first-image.ts';
import { exactJson } from './decide/workflow-parameters.ts';
import type { BuiltWorkflow } from './decide/build-workflow.ts';
import { uploadImages } from './upload-images.ts';

/** Limits of `ignored`: names come from the client. */
const MOST_IGNORED = 50;
const MOST_NAME = 100;

export const translateImages =
  (model: ModelFacts | undefined, task: ImageTask): Translate =>
  (request) =>
    answerRequest(request, model, task);

function* answerRequest(request: TranslatableRequest, model: ModelFacts | undefined, task: ImageTask): Steps<TranslationEnd> {
  const drawable = drawableOf(model);
  if (model === undefined || drawable === undefined)
    return imageFailed('The model of the slot is not known yet; send the request again in a moment');
  const misfit = wrongPath(drawable, task);
  if (misfit !== undefined) return { kind: 'refuse', ...misfit };
  const read = drawable.read(request.body, task);
  if (!read.ok) return { kind: 'refuse', ...read.problem };
  const names = jobNames(request.boundary);
  const upload = task === 'generation' ? undefined : yield* uploadImages(request, names.id, { drawable, task, ...read.parameters });
  if (upload !== undefined && 'kind' in upload) return upload;
  const parameters = upload === undefined ? read.parameters : { ...read.parameters, size: upload.size };
  const { seed = names.seed } = parameters;
  const built = read.build({ parameters, seed, filenamePrefix: names.filenamePrefix, source: upload?.source });
  const size = drawable.sizeOf(parameters);
  const ignored = read.ignored.slice(0, MOST_IGNORED).map((name) => name.slice(0, MOST_NAME));
  const hal0 = { workflow: built.name, checkpoint: drawable.checkpoint, ...(ignored.length === 0 ? {} : { ignored }) };
  const facts = { created: request.receivedAt, hal0 };
  const events = task === 'generation' ? 'image_generation' : 'image_edit';
  const shown = size === undefined ? 'auto' : `${size.width}x${size.height}`;
  const stream = parameters.stream ? createImageStream(parameters, { ...facts, size: shown, events }) : undefined;
  const { workflow } = drawable;
  const drawing = { model: model.id, size, multiple: drawable.rules.multiple, n: parameters.n, workflow };
  const job = { id: names.id, built, drawing };
  const done = yield* drawImages(job, stream?.onPreview);
  if ('kind' in done) return done;
  return yield* stream === undefined ? answerWith(done.images, parameters, facts) : stream.complete(done.images);
}

type DrawingJob = { readonly id: string; readonly built: BuiltWorkflow; readonly drawing: Drawing };

function* drawImages(
  { id, built, drawing }: DrawingJob,
  onPreview?: OnPreview,
): Steps<{ readonly images: readonly SavedImage[] } | TranslationEnd> {
  // First, since a client may leave while the workflow is on its way, and events come at once.
  yield* onLeave([postJson('/queue', { delete: [id] }), postJson('/interrupt', { prompt_id: id })]);
  yield* listen(`/ws?clientId=${id}`);
  const body = `{"prompt":${exactJson(built.workflow)},"prompt_id":"${id}","client_id":"${id}"}`;
  const queued = yield* ask({ method: 'POST', path: '/prompt', headers: JSON_BODY, body, mustFinish: true });
  if (queued.status === 503) return { kind: 'upstream-error', answer: queued };
  if (!parseQueued(queued)) return describeRefusal(parseRefusal(queued), drawing);
  const outcome = yield* awaitJob(id, built.saveNode, onPreview);
  // History keeps the prompts of everyone, and nobody else asks for this one. The client gets its images first.
  if (outcome.kind !== 'unknown') yield* onEnd([postJson('/history', { delete: [id] })]);
  switch (outcome.kind) {
    case 'done':
      return { images: outcome.images };
    case 'failed':
      return describeExecutionError(outcome.error, drawing);
    case 'interrupted':
      return imageFailed('The request was interrupted at the image server; send it again');
    case 'unknown':
      return imageFailed('The image server was restarted and lost the request; send it again');
    case 'broken':
      return imageFailed('The image server has no result of the request; read the log of the slot');
    default:
      return outcome satisfies never;
  }
}

const JSON_BODY = { 'content-type': 'application/json' };

const postJson = (path: string, body: object): UpstreamRequest => ({
  method: 'POST',
  path,
  headers: JSON_BODY,
  body: JSON.stringify(body),
});

/** Names of a job at the server, derived from a random string of the gateway so that nobody can guess them. */
function jobNames(random: string) {
  const id = uuidOf(random);
  const digits = createHash('sha256').update(random).digest('hex');
  // Seeds of 53 bits can be repeated by every program.
  return { id, filenamePrefix: `svc/${id}`, seed: BigInt(`0x${digits.slice(32, 45)}`) };
}
