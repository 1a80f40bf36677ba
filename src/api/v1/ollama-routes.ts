/**
 * Ollama's API under `/ollama/api`, for clients that know no other. Requests become those of OpenAI's routes and are
 * answered by the gateway like any other; lists are read from the board. What changes models is not part of it.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { INFERENCE_PATHS } from '../../gateway/route/decide/inference-paths.ts';
import type { RequestCaller } from '../../schema/words/caller-limits.ts';
import { slotsOfName } from '../../gateway/route/decide/route.ts';
import { createVisibleBoards } from '../../gateway/visible-board.ts';
import { createOllamaAnswer, OLLAMA_REQUESTS, ollamaRequest, type OllamaKind } from '../../gateway/translate/ollama-translation.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { messageOf } from '../../platform/error-text.ts';
import type { BoardSlot, BoardView } from '../../reconciler/board.ts';
import { presetOf } from '../../schema/slot/presets.ts';
import { ANSWERING_STATES } from '../../schema/status/slot-status.ts';
import { ApiError, json } from '../server/answer.ts';
import { defineRoute, CURL_DEFAULT_TYPE, NoInput, parseInput, type DocumentedRoute } from '../server/define-route.ts';
import { askGateway, errorOf } from './ask-gateway.ts';
import { inferenceErrors } from './inference-schemas.ts';
import { modelIds, type V1Deps } from './v1-routes.ts';

interface ModelTraits {
  readonly quantization?: string | undefined;
  readonly parameters?: number | undefined;
  readonly context?: number | undefined;
  readonly dimensions?: number | undefined;
}

export interface OllamaDeps extends Pick<V1Deps, 'board' | 'gateway' | 'abilities' | 'startedAt'> {
  readonly traits: (slot: BoardSlot) => ModelTraits | undefined;
  /** Milliseconds: monotonic, and of the wall. */
  readonly now: () => { readonly ms: number; readonly wallMs: number };
}

/** Clients refuse servers that are too old. Its requests are those of this version of Ollama. */
const VERSION = '0.12.0';
/** Thousands of embeddings. */
const ANSWER_BYTES = 64 * 1024 * 1024;
const KEEP_ALIVE = '"keep_alive" is ignored: "idle_timeout" of the slot decides when its model is unloaded';
const NEVER = '2318-01-01T00:00:00Z';

const ANSWERS = { 'application/json': z.looseObject({}), 'application/x-ndjson': z.string().describe('Unless "stream" is false') };
const SUMMARIES: readonly (readonly [OllamaKind, string])[] = [
  ['chat', 'Answers a conversation, in lines of JSON unless "stream" is false'],
  ['generate', 'Answers a prompt, in lines of JSON unless "stream" is false'],
  ['embed', 'Turns texts into vectors'],
];

export function createOllamaRoutes(deps: OllamaDeps): readonly DocumentedRoute[] {
  const inference = SUMMARIES.map(([kind, summary]): DocumentedRoute => {
    const input = z.object({ body: OLLAMA_REQUESTS[kind] });
    return {
      method: 'POST',
      path: `/ollama/api/${kind}`,
      access: 'v1',
      cors: true,
      tag: 'inference',
      summary,
      input,
      answers: { 200: { kind: 'passed', description: 'The answer, translated from that of the model server', content: ANSWERS } },
      errors: inferenceErrors({ capability: 'chat' }),
      bodyLimit: 'SVC_BODY_LIMIT',
      consumes: [CURL_DEFAULT_TYPE],
      handler: (request, reply) => answer(kind, { asked: parseInput(input, request).body, request, reply }, deps),
    };
  });
  return [...inference, ...createListRoutes(deps)];
}

interface AskedOllama {
  readonly asked: z.output<(typeof OLLAMA_REQUESTS)[OllamaKind]>;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

async function answer(
  kind: OllamaKind,
  { asked, request, reply }: AskedOllama,
  { board, gateway, now }: OllamaDeps,
): Promise<FastifyReply> {
  const translation = createOllamaAnswer(kind, asked.model, now);
  const model = nameMeant(asked.model, board.current());
  const translated = ollamaRequest(kind, asked, model);
  if (asked.keep_alive !== undefined) void reply.header('x-svc-note', KEEP_ALIVE);
  const path = INFERENCE_PATHS.find((each) => each.path === translated?.path);
  if (translated === undefined || path === undefined) {
    slotOf(model, board.current());
    return reply.send(translation.loaded(asked.keep_alive));
  }
  const leaving = new AbortController();
  reply.raw.once('close', () => leaving.abort());
  const begun = Promise.withResolvers<undefined>();
  const lines = new PassThrough();
  const pieces: Buffer[] = [];
  let bytes = 0;
  const onPiece = async (piece: Buffer): Promise<void> => {
    bytes += piece.length;
    if (translated.body['stream'] === true) {
      begun.resolve(undefined);
      const text = translation.add(piece);
      if (text !== '' && !lines.write(text)) await once(lines, 'drain', { signal: leaving.signal });
    } else if (bytes <= ANSWER_BYTES) pieces.push(piece);
    else throw new Error(`The answer has more than ${ANSWER_BYTES} bytes`);
  };
  const sent = { path, contentType: 'application/json', body: [Buffer.from(JSON.stringify(translated.body))], onPiece };
  const { socket, headers } = request.raw;
  const traceparent = [headers['traceparent'] ?? []].flat()[0];
  const asking = askGateway({ gateway, socket, requestId: request.id, caller: request.caller, traceparent }, sent, leaving.signal);
  const early = await Promise.race([asking, begun.promise]).catch((error: unknown) => {
    throw new ApiError('upstream.failed', messageOf(error));
  });
  if (early === undefined) {
    const end = (isCut: boolean) => (): void => void lines.end(translation.end(isCut));
    void asking.then(end(false), end(true));
    return reply.type('application/x-ndjson').send(lines);
  }
  if (early.status !== 200) return reply.code(early.status).send({ error: errorOf(parseJson(early.text), 'The request failed').message });
  const whole = translation.whole(parseJson(Buffer.concat(pieces).toString('utf8')));
  if (whole === undefined) throw new ApiError('upstream.failed', 'The model server answered in a form that cannot be translated');
  return reply.send(whole);
}

/** Clients add ":latest" to names without a tag. */
function nameMeant(name: string, { names }: Pick<BoardView, 'names'>): string {
  return names.has(name) ? name : name.replace(/:latest$/, '');
}

function slotOf(name: string, view: BoardView): BoardSlot {
  const [slot] = slotsOfName(name, view);
  if (slot !== undefined) return slot;
  throw new ApiError('model.not_found', `model "${name.slice(0, 200)}" not found: use one that "/ollama/api/tags" lists`, {
    param: 'model',
  });
}

const AnyObject = z.looseObject({});
const Models = z.object({ models: z.array(z.looseObject({ name: z.string(), model: z.string(), size: z.int(), digest: z.string() })) });

function createListRoutes({ board, abilities, traits, startedAt, now }: OllamaDeps): readonly DocumentedRoute[] {
  const modified_at = new Date(startedAt).toISOString();
  const contextOf = (slot: BoardSlot): number => slot.spec.model.context ?? traits(slot)?.context ?? 0;
  const visibleTo = createVisibleBoards<BoardView>();
  const list = (caller: RequestCaller | undefined) => {
    const view = visibleTo(board.current(), caller?.limits?.models);
    return modelIds(view).flatMap((name) => {
      const [slot] = slotsOfName(name, view);
      if (slot === undefined || !slot.capabilities.some((each) => SERVED.has(each))) return [];
      const size = slot.model?.sizeBytes ?? 0;
      // Clients tell models apart by it. It is not that of the bytes, which need not be here.
      const digest = createHash('sha256')
        .update(`${slot.spec.model.default} ${slot.model?.version ?? ''}`)
        .digest('hex');
      return [{ slot, entry: { name, model: name, modified_at, size, digest, details: detailsOf(slot, traits(slot)) } }];
    });
  };
  const get = { cors: true, tag: 'models', input: NoInput } as const;
  return [
    defineRoute('GET', '/ollama/api/version', 'open', {
      ...get,
      summary: 'The version of Ollama whose requests the service knows',
      answers: { 200: json('The version', z.object({ version: z.string() })) },
      handler: () => ({ status: 200, body: { version: VERSION } }),
    }),
    defineRoute('GET', '/ollama/api/tags', 'open', {
      ...get,
      knowsCaller: true,
      summary: 'Lists the models for texts and embeddings, as Ollama does',
      answers: { 200: json('The models', Models) },
      handler: (_input, { caller }) => ({ status: 200, body: { models: list(caller).map(({ entry }) => entry) } }),
    }),
    defineRoute('GET', '/ollama/api/ps', 'v1', {
      ...get,
      summary: 'Lists the models that are loaded, as Ollama does',
      answers: { 200: json('The loaded models', Models) },
      handler(_input, { caller }) {
        const running = list(caller).filter(
          ({ slot: { status, spec }, entry }) => ANSWERING_STATES.has(status.state) && entry.name === spec.model.default,
        );
        const models = running.map(({ slot, entry }) => {
          const { idleTimeoutMs } = slot.spec.lifecycle;
          const expires_at = Number.isFinite(idleTimeoutMs) ? new Date(now().wallMs + idleTimeoutMs).toISOString() : NEVER;
          return { ...entry, expires_at, size_vram: entry.size, context_length: contextOf(slot) };
        });
        return { status: 200, body: { models } };
      },
    }),
    defineRoute('POST', '/ollama/api/show', 'v1', {
      cors: true,
      tag: 'models',
      summary: 'Describes a model, as Ollama does',
      consumes: [CURL_DEFAULT_TYPE],
      input: z.object({ body: z.looseObject({ model: z.string().optional(), name: z.string().optional() }) }),
      answers: { 200: json('The model, with the parameters of a preset', AnyObject) },
      errors: ['model.not_found'],
      handler({ body: { name = '', model: asked = name } }, { caller }) {
        const view = visibleTo(board.current(), caller?.limits?.models);
        const id = nameMeant(asked, view);
        const slot = slotOf(id, view);
        const known = abilities?.(slot) ?? {};
        const details = detailsOf(slot, traits(slot));
        const preset = presetOf(slot, id)?.preset;
        const parameters = Object.entries({ ...preset?.set, ...preset?.force }).map(([key, value]) => `${key} ${JSON.stringify(value)}`);
        const model_info = {
          'general.architecture': details.family,
          'general.parameter_count': traits(slot)?.parameters ?? 0,
          [`${details.family}.context_length`]: contextOf(slot),
          [`${details.family}.embedding_length`]: traits(slot)?.dimensions ?? 0,
        };
        const served = slot.capabilities.flatMap((each) => SERVED.get(each) ?? []);
        const capabilities = [...new Set(served), ...(['tools', 'thinking', 'vision'] as const).filter((each) => known[each] === true)];
        return { status: 200, body: { modified_at, template: '', parameters: parameters.join('\n'), details, model_info, capabilities } };
      },
    }),
  ];
}

const SERVED: ReadonlyMap<string, string> = new Map([
  ['chat', 'completion'],
  ['completion', 'completion'],
  ['embedding', 'embedding'],
]);

function detailsOf({ spec, model }: BoardSlot, traits: ModelTraits | undefined) {
  const { parameters = 0, quantization: quantization_level = '' } = traits ?? {};
  const family = model?.family ?? spec.provider;
  const parameter_size =
    parameters === 0 ? '' : parameters < 1e9 ? `${Math.round(parameters / 1e6)}M` : `${(parameters / 1e9).toFixed(1)}B`;
  return { parent_model: '', format: spec.provider, family, families: [family], parameter_size, quantization_level };
}
