/** Read-only lists: models, downloads, providers, hardware. */
import { z } from 'zod';
import { json, type Immutable } from '../server/answer.ts';
import { defineRoute, NoInput, type DocumentedRoute } from '../server/define-route.ts';
import { Hardware, Models, Providers, Pulls } from '../../schema/status/answers.ts';
import { Cluster, RequestEntries } from '../../schema/status/resource-answers.ts';
import { SlotName } from '../../schema/words/names.ts';
import { viewCluster, viewHardware, viewModel, viewProvider, viewPulls, viewRequest } from './decide/inventory-view.ts';
import type { ManageDeps } from './manage-deps.ts';

export function createInventoryRoutes({ manage, board, requests }: ManageDeps): readonly DocumentedRoute[] {
  return [
    list('/api/models', 'Models of the catalogue and of the store', Models, async () => ({
      models: (await manage.models()).map(viewModel),
    })),
    list('/api/pulls', 'Downloads in progress', Pulls, () => viewPulls(board.current(), manage.pulls())),
    list('/api/providers', 'Providers, and whether this host can run them', Providers, async () => ({
      providers: (await manage.providers()).map(viewProvider),
    })),
    list('/api/requests', 'Inference requests of this gateway that have failed or were slow, since it started', RequestEntries, () => ({
      requests: requests.list().map(viewRequest),
    })),
    list('/api/hardware', 'CPU, memory, GPUs and NPUs of the host', Hardware, async () => viewHardware(await manage.hardware())),
    clusterRoute(manage),
  ];
}

const ClusterQuery = z.strictObject({
  slot: SlotName.optional().describe('Only pods of this slot'),
  limit: z.coerce.number().int().min(1).max(1000).default(100).describe('Number of pods at most'),
});

function clusterRoute(manage: ManageDeps['manage']): DocumentedRoute {
  return defineRoute('GET', '/api/cluster', 'read', {
    tag: 'inventory',
    summary: 'In a cluster: which replica of the gateway leads, and the pods of the slots',
    input: z.object({ query: ClusterQuery }),
    answers: { 200: json('The leader and the pods; without both outside of a cluster', Cluster) },
    handler: ({ query }) => ({ status: 200, body: viewCluster(manage.cluster(), query) }),
  });
}

type Awaitable<T> = T | Promise<T>;

function list<Schema extends z.ZodType>(
  path: string,
  summary: string,
  schema: Schema,
  read: () => Awaitable<Immutable<z.output<Schema>>>,
): DocumentedRoute {
  return defineRoute('GET', path, 'read', {
    tag: 'inventory',
    summary,
    input: NoInput,
    answers: { 200: json(summary, schema) },
    handler: async () => ({ status: 200, body: await read() }),
  });
}
