/** What there is to work with: models, running downloads, providers, hardware. */
import type { Route } from '../route.ts';
import { viewProgress } from './decide/slot-view.ts';
import type { ManageDeps } from './manage-deps.ts';

export function createInventoryRoutes(deps: ManageDeps): readonly Route[] {
  return [...modelRoutes(deps), ...hostRoutes(deps)];
}

function modelRoutes(deps: ManageDeps): readonly Route[] {
  const { manage } = deps;
  return [
    {
      method: 'GET',
      path: '/api/models',
      access: 'read',
      tag: 'inventory',
      summary: 'Models of the catalogue and of the store',
      async handler() {
        const models = (await manage.models()).map((model) => ({
          id: model.id,
          provider: model.provider,
          family: model.family,
          present: model.present,
          size_bytes: model.sizeBytes ?? null,
          memory_bytes: model.memoryBytes ?? null,
          min_vram_bytes: model.minVramBytes ?? null,
          license: model.license ?? null,
          license_url: model.licenseUrl ?? null,
          selectable: model.selectable,
          reason: model.reason ?? null,
        }));
        return { models };
      },
    },
    {
      method: 'GET',
      path: '/api/pulls',
      access: 'read',
      tag: 'inventory',
      summary: 'Downloads under way',
      handler() {
        const slots = [...deps.board.current().slots.values()];
        return {
          pulls: slots.flatMap(({ name, status }) => (status.progress === undefined ? [] : [{ slot: name, ...viewProgress(status) }])),
        };
      },
    },
  ];
}

function hostRoutes({ manage }: ManageDeps): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/api/providers',
      access: 'read',
      tag: 'inventory',
      summary: 'Kinds of runtime, and whether this host can run them',
      async handler() {
        const providers = (await manage.providers()).map((provider) => ({
          kind: provider.kind,
          serves: provider.serves,
          backends: provider.backends,
          default_backend: provider.defaultBackend,
          available: provider.available,
          reason: provider.reason,
        }));
        return { providers };
      },
    },
    {
      method: 'GET',
      path: '/api/hardware',
      access: 'read',
      tag: 'inventory',
      summary: 'Memory and devices of the host',
      async handler() {
        const { memoryTotalBytes, memoryAvailableBytes } = await manage.hardware();
        return { memory_total_bytes: memoryTotalBytes ?? null, memory_available_bytes: memoryAvailableBytes ?? null };
      },
    },
  ];
}
