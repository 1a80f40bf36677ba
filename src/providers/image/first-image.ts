/**
 * Proves that a server can load its model: it draws one image of the least size, once for each start of the server.
 * The job has the same id in every probe, so its progress is looked up and not remembered:
 *
 *   in history ─► passing or failing    in the queue ─► loading    neither ─► queue it: loading
 */
import { createHash } from 'node:crypto';
import type { Endpoint, Health, ProbeIo, ProbeResponse, SlotContext } from '../provider.ts';
import { PASSING } from '../decide/judge-status.ts';
import type { UpstreamAnswer } from '../translation.ts';
import { buildWorkflow } from './decide/build-workflow.ts';
import { isQueued, parseHistory, parseQueued, parseRefusal } from './decide/comfy-answers.ts';
import { FAMILIES, SIDES } from './decide/image-families.ts';
import { imageModel, placeOf } from './decide/image-model.ts';
import { exactJson } from './decide/workflow-parameters.ts';

const TIMEOUT_MS = 30_000;

type ProbedSlot = Pick<SlotContext, 'name' | 'spec' | 'model'>;

/** A workflow of a user may draw for minutes, so nothing is drawn with it. */
export async function drawFirst(endpoint: Endpoint, io: ProbeIo, { name, model }: ProbedSlot, signal: AbortSignal): Promise<Health> {
  const known = imageModel(model);
  if (known === undefined) return PASSING;
  const id = uuidOf(`${name} ${model.id} ${model.version ?? ''}`);
  const ask = async (method: 'GET' | 'POST', path: string, body?: string): Promise<UpstreamAnswer> =>
    answerOf(await io.request(endpoint, { method, path, timeoutMs: TIMEOUT_MS, signal, ...(body === undefined ? {} : { body }) }));
  const { cfg } = FAMILIES[known.family];
  const size = { width: SIDES.least, height: SIDES.least };
  const parameters = { prompt: '', negativePrompt: '', n: 1, size, steps: 1, cfg };
  const checkpoint = placeOf(model.hostPath).name;
  const { workflow, saveNode } = buildWorkflow({
    model: known,
    checkpoint,
    parameters,
    seed: 0n,
    filenamePrefix: '',
    saveWith: 'PreviewImage',
  });
  const history = await ask('GET', `/history/${id}`);
  if (history.status === 0) return loading('The server is busy: it loads the model');
  let outcome = parseHistory(history, id, saveNode);
  if (outcome.kind === 'unknown') {
    if (isQueued(await ask('GET', '/queue'), id) !== false) return loading('The server loads the model: it draws a first, small image');
    // It may have ended between the two answers.
    outcome = parseHistory(await ask('GET', `/history/${id}`), id, saveNode);
  }
  if (outcome.kind === 'done') return PASSING;
  if (outcome.kind === 'failed') {
    const { nodeType, exceptionType, message } = outcome.error;
    const what = message === '' ? exceptionType : message;
    return failing(
      `The server cannot draw with "${model.id}": node "${nodeType}" failed: ${what}; get the model again, or choose another one`,
    );
  }
  if (outcome.kind !== 'unknown') return failing(`The server has no result of its first image with "${model.id}"`);
  const queued = await ask('POST', '/prompt', `{"prompt":${exactJson(workflow)},"prompt_id":"${id}"}`);
  const refusal = queued.status === 400 && !parseQueued(queued) ? parseRefusal(queued) : undefined;
  if (refusal !== undefined)
    return failing(`The server refuses the workflow for "${model.id}": ${refusal.message}; update ComfyUI, or choose another model`);
  return loading('The server loads the model: it is to draw a first, small image');
}

const loading = (message: string): Health => ({ kind: 'loading', message });
const failing = (message: string): Health => ({ kind: 'failing', message });
const answerOf = ({ status, body }: ProbeResponse): UpstreamAnswer => ({ status, headers: new Map(), body: Buffer.from(body) });

/** ComfyUI takes UUIDs as ids of jobs. */
export function uuidOf(text: string): string {
  const digits = createHash('sha256').update(text).digest('hex');
  return digits.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-4$3-8$4-$5');
}
