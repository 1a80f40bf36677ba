/** The route of an inference path as requests use it: what its documentation adds is in `v1-routes.ts`. */
import type { InferencePath } from '../../gateway/route/decide/inference-paths.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { ApiError } from '../server/answer.ts';
import type { Route } from '../server/define-route.ts';

export function rawInferenceRoute(path: InferencePath, gateway: Pick<Gateway, 'handle'>) {
  return {
    method: 'POST',
    path: path.path,
    access: 'v1',
    cors: true,
    summary: path.summary,
    tag: 'inference',
    ...(path.body === 'multipart' ? { multipart: true } : {}),
    raw: ({ req, res, head, requestId }) => gateway.handle({ req, res, path, head, requestId }),
    handler: () => {
      throw new ApiError('server.internal', 'This route bypasses the framework');
    },
  } as const satisfies Route;
}
