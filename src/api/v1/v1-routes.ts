/** The OpenAI routes. Inference requests are passed to the gateway unchanged; models are listed from the board. */
import { z } from 'zod';
import type { Gateway } from '../../gateway/gateway.ts';
import { INFERENCE_PATHS, type InferencePath } from '../../gateway/route/decide/inference-paths.ts';
import { json, ApiError, type Immutable } from '../server/answer.ts';
import { defineRoute, NoInput, type DocumentedRoute } from '../server/define-route.ts';
import { rawInferenceRoute } from '../server/hot-path.ts';
import { inferenceAnswers, inferenceErrors, inferenceInput, Model, ModelList } from './inference-schemas.ts';
import { createVoiceRoutes, type VoiceRoutesDeps } from './voice-routes.ts';
import { CHAT_ABILITIES, type ChatAbilities } from '../../schema/slot/provider-kinds.ts';
import { isEnabled, slotsOfName } from '../../gateway/route/decide/route.ts';
import type { BoardSlot, BoardView } from '../../reconciler/board.ts';

export interface V1Deps extends VoiceRoutesDeps {
  readonly gateway: Pick<Gateway, 'handle'>;
  /** Default: unknown. */
  readonly abilities?: (slot: BoardSlot) => ChatAbilities;
  /** Unix milliseconds; the `created` time of every model. */
  readonly startedAt: number;
}

export function createV1Routes(deps: V1Deps): readonly DocumentedRoute[] {
  const { board, gateway } = deps;
  return [
    ...INFERENCE_PATHS.map((path) => inferenceRoute(path, gateway)),
    ...createVoiceRoutes(deps),
    defineRoute('GET', '/v1/models', 'open', {
      cors: true,
      summary: 'Lists the models of all slots by id and alias',
      tag: 'models',
      input: NoInput,
      answers: { 200: json('The models', ModelList) },
      handler: () => ({ status: 200, body: listModels(board.current(), deps) }),
    }),
    defineRoute('GET', '/v1/models/*', 'v1', {
      cors: true,
      summary: 'Describes one model by id, alias or slot name',
      tag: 'models',
      input: z.object({
        params: z.object({ '*': z.string().describe('A model id, which may contain "/", an alias or the name of a slot') }),
      }),
      answers: { 200: json('The model', Model) },
      errors: ['model.not_found'],
      handler({ params }) {
        const id = params['*'];
        const entry = entryOf(id, board.current(), deps);
        if (entry !== undefined) return { status: 200, body: entry };
        const problem = `There is no model "${id.slice(0, 200)}"; use one that "/v1/models" lists`;
        throw new ApiError('model.not_found', problem, { param: 'model' });
      },
    }),
  ];
}

function inferenceRoute(path: InferencePath, gateway: V1Deps['gateway']): DocumentedRoute {
  return {
    ...rawInferenceRoute(path, gateway),
    input: inferenceInput(path),
    answers: inferenceAnswers(path),
    errors: inferenceErrors(path),
  };
}

type ModelDeps = Pick<V1Deps, 'abilities' | 'startedAt'>;
type ModelBody = Immutable<z.output<typeof Model>>;

/** One entry per model id and alias. Disabled slots are left out, so that clients offer only models that can answer. */
function listModels(view: BoardView, deps: ModelDeps): Immutable<z.output<typeof ModelList>> {
  const enabled = [...view.slots.values()].filter(isEnabled);
  const ids = new Set(enabled.flatMap(({ spec: { model } }) => [model.default, ...model.aliases]));
  return { object: 'list', data: [...ids].flatMap((id) => entryOf(id, view, deps) ?? []) };
}

/** Undefined if no slot has this name. */
function entryOf(id: string, view: BoardView, { startedAt, abilities }: ModelDeps): ModelBody | undefined {
  const slots = slotsOfName(id, view);
  const first = slots.find(({ status }) => status.state === 'ready') ?? slots[0];
  if (first === undefined) return undefined;
  const known = slots.map((slot) => abilities?.(slot) ?? {});
  return {
    id,
    object: 'model',
    created: Math.floor(startedAt / 1000),
    owned_by: 'svc',
    slot: first.name,
    state: first.status.state,
    slots: slots.map(({ name, status: { state } }) => ({ name, state })),
    capabilities: [
      ...new Set(slots.flatMap(({ capabilities }) => capabilities)),
      ...CHAT_ABILITIES.filter((ability) => known.some((each) => each[ability] === true)),
    ],
  };
}
