/** Models, providers and downloads as JSON of the API. */
import type { z } from 'zod';
import type { BoardView } from '../../../reconciler/board.ts';
import type { Immutable } from '../../answer.ts';
import type { ModelListing, ProviderListing } from '../../ports.ts';
import type { ModelEntry, ProviderEntry, Pulls } from '../answers.ts';
import { viewProgress } from './slot-view.ts';

/** Pure. */
export function viewModel(model: ModelListing): z.output<typeof ModelEntry> {
  return {
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
  };
}

/** Pure. */
export function viewProvider(provider: ProviderListing): Immutable<z.output<typeof ProviderEntry>> {
  const { kind, serves, backends, defaultBackend, available, reason } = provider;
  return { kind, serves, backends, default_backend: defaultBackend, available, reason };
}

/** Pure. */
export function viewPulls(board: BoardView): z.output<typeof Pulls> {
  return {
    pulls: [...board.slots.values()].flatMap(({ name, status }) => {
      const progress = viewProgress(status);
      return progress === null ? [] : [{ slot: name, ...progress }];
    }),
  };
}
