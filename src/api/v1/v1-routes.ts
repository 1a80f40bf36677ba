/**
 * The OpenAI routes, and those to what model servers have besides. Requests are passed to the gateway unchanged; models
 * are listed from the board.
 */
import { z } from 'zod';
import type { Gateway } from '../../gateway/gateway.ts';
import { INFERENCE_PATHS, NATIVE_PATHS, parseUpstreamUrl, PROPS_PATH, UPSTREAM_PATH } from '../../gateway/route/decide/inference-paths.ts';
import { json, ApiError, type Immutable } from '../server/answer.ts';
import { defineRoute, NoInput, type DocumentedRoute, type RouteMethod } from '../server/define-route.ts';
import { rawInferenceRoute } from '../server/hot-path.ts';
import { documentedRoute, Model, ModelField, ModelList } from './inference-schemas.ts';
import { createVoiceRoutes, type VoiceRoutesDeps } from './voice-routes.ts';
import { CHAT_ABILITIES, type ChatAbilities } from '../../schema/slot/provider-kinds.ts';
import { isEnabled, slotsOfName } from '../../gateway/route/decide/route.ts';
import { createVisibleBoards } from '../../gateway/visible-board.ts';
import { presetOf } from '../../schema/slot/presets.ts';
import type { SlotSpec } from '../../schema/slot/slot-spec.ts';
import type { SlotName } from '../../schema/words/names.ts';
import type { BoardSlot, BoardView } from '../../reconciler/board.ts';

export interface V1Deps extends VoiceRoutesDeps {
  readonly gateway: Pick<Gateway, 'handle'>;
  /** Default: unknown. */
  readonly abilities?: (slot: BoardSlot) => ChatAbilities;
  /** Administrators reach every path of model servers. Default: nobody does. */
  readonly upstream?: boolean | undefined;
  /** Unix milliseconds; the `created` time of every model. */
  readonly startedAt: number;
}

export function createV1Routes(deps: V1Deps): readonly DocumentedRoute[] {
  const { board, gateway } = deps;
  const visibleTo = createVisibleBoards<BoardView>();
  return [
    ...INFERENCE_PATHS.map((path) => documentedRoute(path, rawInferenceRoute(path, gateway))),
    ...createNativeRoutes(gateway, deps.upstream === true),
    ...createVoiceRoutes(deps),
    defineRoute('GET', '/v1/models', 'open', {
      cors: true,
      summary: 'Lists the models of all slots by id and alias, and their presets',
      tag: 'models',
      knowsCaller: true,
      input: NoInput,
      answers: { 200: json('The models', ModelList) },
      handler: (_input, { caller }) => ({ status: 200, body: listModels(visibleTo(board.current(), caller?.limits?.models), deps) }),
    }),
    defineRoute('GET', '/v1/models/*', 'v1', {
      cors: true,
      summary: 'Describes one model by id, alias, preset or slot name',
      tag: 'models',
      input: z.object({
        params: z.object({ '*': z.string().describe('A model id, which may contain "/", an alias or the name of a slot') }),
      }),
      answers: { 200: json('The model', Model) },
      errors: ['model.not_found'],
      handler({ params }, { caller }) {
        const id = params['*'];
        const entry = entryOf(id, visibleTo(board.current(), caller?.limits?.models), deps);
        if (entry !== undefined) return { status: 200, body: entry };
        const problem = `There is no model "${id.slice(0, 200)}"; use one that "/v1/models" lists`;
        throw new ApiError('model.not_found', problem, { param: 'model' });
      },
    }),
  ];
}

const METHODS: readonly RouteMethod[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const MISLED = 'Send "/upstream/<slot>/<path>", where the path has at most 4096 characters, no "..", and no second "/" at its start';

function createNativeRoutes(gateway: V1Deps['gateway'], isUpstreamOn: boolean): readonly DocumentedRoute[] {
  const named = NATIVE_PATHS.map((path) => documentedRoute(path, rawInferenceRoute(path, gateway)));
  return [...named, propsRoute(gateway), ...(isUpstreamOn ? METHODS.map((method) => upstreamRoute(method, gateway)) : [])];
}

/** It names files of the host, so it needs the scope of other reads that do. */
function propsRoute(gateway: V1Deps['gateway']): DocumentedRoute {
  const { cors: _cors, ...route } = documentedRoute(PROPS_PATH, rawInferenceRoute(PROPS_PATH, gateway));
  return {
    ...route,
    method: 'GET',
    access: 'all',
    tag: 'system',
    input: z.object({ query: z.object({ model: ModelField }) }),
    raw(request) {
      const model = new URL(request.req.url ?? '', 'http://x').searchParams.get('model') ?? undefined;
      gateway.handle({ ...request, path: PROPS_PATH, direct: { method: 'GET', model } });
    },
  };
}

function upstreamRoute(method: RouteMethod, gateway: V1Deps['gateway']): DocumentedRoute {
  const { cors: _cors, ...route } = documentedRoute(UPSTREAM_PATH, rawInferenceRoute(UPSTREAM_PATH, gateway));
  return {
    ...route,
    method,
    access: 'admin',
    tag: 'system',
    anyType: true,
    input: z.object({ params: z.object({ slot: z.string(), '*': z.string().describe('A path of the model server') }) }),
    raw(request) {
      const asked = parseUpstreamUrl(request.req.url ?? '');
      if (asked === undefined) throw new ApiError('request.invalid', MISLED, { param: 'path' });
      // A page of the server must not act as a page of this service.
      request.res.setHeader('content-security-policy', 'sandbox');
      gateway.handle({ ...request, path: UPSTREAM_PATH, direct: { method, model: asked.slot, target: asked.target } });
    },
  };
}

type ModelDeps = Pick<V1Deps, 'abilities' | 'startedAt'>;
type ModelBody = Immutable<z.output<typeof Model>>;

/** One entry per model id, alias and preset. */
function listModels(view: BoardView, deps: ModelDeps): Immutable<z.output<typeof ModelList>> {
  return { object: 'list', data: modelIds(view).flatMap((id) => entryOf(id, view, deps) ?? []) };
}

/** Disabled slots are left out, so that clients offer only models that can answer. */
export function modelIds(view: BoardView): readonly string[] {
  const enabled = [...view.slots.values()].filter(isEnabled);
  const ids = new Set(enabled.flatMap(({ name, spec: { model } }) => [model.default, ...model.aliases, ...listedPresets(name, model)]));
  return [...ids];
}

const listedPresets = (slot: SlotName, { presets }: SlotSpec['model']): readonly string[] =>
  Object.entries(presets).flatMap(([name, { aliases }]) => [`${slot}:${name}`, ...aliases]);

/** Undefined if no slot has this name. */
function entryOf(id: string, view: BoardView, { startedAt, abilities }: ModelDeps): ModelBody | undefined {
  const slots = slotsOfName(id, view);
  const first = slots.find(({ status }) => status.state === 'ready') ?? slots[0];
  if (first === undefined) return undefined;
  const found = presetOf(first, id);
  const known = slots.map((slot) => abilities?.(slot) ?? {});
  return {
    id,
    object: 'model',
    created: Math.floor(startedAt / 1000),
    owned_by: 'svc',
    slot: first.name,
    ...(found === undefined ? {} : { preset: { name: found.name, set: found.preset.set, force: found.preset.force } }),
    state: first.status.state,
    slots: slots.map(({ name, status: { state } }) => ({ name, state })),
    capabilities: [
      ...new Set(slots.flatMap(({ capabilities }) => capabilities)),
      ...CHAT_ABILITIES.filter((ability) => known.some((each) => each[ability] === true)),
    ],
  };
}
