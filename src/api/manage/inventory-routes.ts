/** Read-only lists: models, downloads, providers, hardware. */
import type { Route } from '../route.ts';
import { viewProgress } from './decide/slot-view.ts';
import { toJson } from './decide/to-json.ts';
import type { ManageDeps } from './manage-deps.ts';

export function createInventoryRoutes({ manage, board }: ManageDeps): readonly Route[] {
  const row = (path: string, summary: string, handler: Route['handler']): Route => ({
    method: 'GET',
    path,
    access: 'read',
    tag: 'inventory',
    summary,
    handler,
  });
  return [
    row('/api/models', 'Models of the catalogue and of the store', async () => ({ models: (await manage.models()).map(toJson) })),
    row('/api/pulls', 'Downloads in progress', () => {
      const slots = [...board.current().slots.values()];
      return {
        pulls: slots.flatMap(({ name, status }) => (status.progress === undefined ? [] : [{ slot: name, ...viewProgress(status) }])),
      };
    }),
    row('/api/providers', 'Kinds of runtime, and whether this host can run them', async () => ({
      providers: (await manage.providers()).map(toJson),
    })),
    row('/api/hardware', 'Memory of the host', async () => {
      const { memoryTotalBytes, memoryAvailableBytes } = await manage.hardware();
      return toJson({ memoryTotalBytes, memoryAvailableBytes });
    }),
  ];
}
