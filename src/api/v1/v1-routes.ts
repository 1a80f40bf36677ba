/** The OpenAI routes. Inference requests are passed to the gateway unchanged; models are listed from the board. */
import type { Gateway } from '../../gateway/gateway.ts';
import { INFERENCE_PATHS } from '../../gateway/decide/inference-paths.ts';
import type { Board } from '../../reconciler/board.ts';
import { ApiError } from '../api-error.ts';
import type { Route } from '../route.ts';
import { listModels, retrieveModel } from './model-list.ts';

export interface V1Deps {
  readonly board: Pick<Board, 'current'>;
  readonly gateway: Pick<Gateway, 'handle'>;
  /** Unix milliseconds; the `created` time of every model. */
  readonly startedAt: number;
}

export function createV1Routes({ board, gateway, startedAt }: V1Deps): Route[] {
  const inference = INFERENCE_PATHS.map((path): Route => ({
    method: 'POST',
    path: path.path,
    access: 'v1',
    cors: true,
    summary: path.summary,
    tag: 'inference',
    raw: ({ req, res, head, requestId }) => gateway.handle({ req, res, path, head, requestId }),
    handler: () => {
      throw new ApiError('server.internal', 'This route bypasses the framework');
    },
  }));
  return [
    ...inference,
    {
      method: 'GET',
      path: '/v1/models',
      access: 'open',
      cors: true,
      summary: 'Lists the models of all slots by id and alias',
      tag: 'models',
      handler: () => listModels(board.current(), startedAt),
    },
    {
      method: 'GET',
      path: '/v1/models/*',
      access: 'v1',
      cors: true,
      summary: 'Describes one model by id, alias or slot name',
      tag: 'models',
      handler(request) {
        const id: unknown = Reflect.get(Object(request.params), '*');
        const model = typeof id === 'string' ? retrieveModel(board.current(), id, startedAt) : undefined;
        if (model === undefined) {
          throw new ApiError('model.not_found', `Use a model that "/v1/models" lists instead of "${String(id).slice(0, 200)}"`, {
            param: 'model',
          });
        }
        return model;
      },
    },
  ];
}
