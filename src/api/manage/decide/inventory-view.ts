/** Models, providers and downloads as JSON of the API. */
import type { z } from 'zod';
import type { BoardView } from '../../../reconciler/board.ts';
import type { Immutable } from '../../server/answer.ts';
import type { ModelDetail, ModelListing, ProviderListing, PullListing } from '../../ports.ts';
import type { ModelDetail as ModelDetailAnswer, ModelEntry, ProviderEntry, Pulls } from '../../../schema/status/answers.ts';
import { viewProgress } from './slot-view.ts';

/** Pure. */
export function viewModel(model: ModelListing): z.output<typeof ModelEntry> {
  return {
    id: model.id,
    kind: model.kind ?? null,
    provider: model.provider,
    family: model.family,
    present: model.present,
    size_bytes: model.sizeBytes ?? null,
    memory_bytes: model.memoryBytes ?? null,
    min_memory_bytes: model.minMemoryBytes ?? null,
    min_vram_bytes: model.minVramBytes ?? null,
    context: model.context ?? null,
    quantization: model.quantization ?? null,
    parameters: model.parameters ?? null,
    pooling: model.pooling ?? null,
    experts: model.experts === undefined ? null : { total: model.experts.total, active: model.experts.active ?? null },
    abilities: model.abilities === undefined ? null : [...model.abilities],
    license: model.license ?? null,
    license_url: model.licenseUrl ?? null,
    verified: model.verified ?? null,
    selectable: model.selectable,
    reason: model.reason ?? null,
  };
}

/** Pure. */
export function viewModelDetail(model: ModelDetail): Immutable<z.output<typeof ModelDetailAnswer>> {
  const files = model.files.map(({ path, sizeBytes, sha256, url, present }) => ({
    path,
    size_bytes: sizeBytes ?? null,
    sha256: sha256 ?? null,
    url: url ?? null,
    present,
  }));
  return { ...viewModel(model), files, sources: model.sources };
}

/** Pure. */
export function viewProvider(provider: ProviderListing): Immutable<z.output<typeof ProviderEntry>> {
  const { kind, serves, backends, defaultBackend, available, reason, availability } = provider;
  return { kind, serves, backends, default_backend: defaultBackend, available, reason, availability };
}

/** A download that slots wait for is listed once for each of them, and any other one by itself. Pure. */
export function viewPulls(board: BoardView, pulls: readonly PullListing[]): z.output<typeof Pulls> {
  const ofSlots = [...board.slots.values()].flatMap(({ name, spec, status }) => {
    const progress = viewProgress(status);
    if (progress === null) return [];
    const pull = pulls.find(({ id, progress: own }) => id === spec?.model.default && own?.what === status.progress?.what);
    return [{ slot: name, model: pull?.id ?? null, failed: false, message: '', ...progress }];
  });
  const listed = new Set(ofSlots.map(({ model }) => model));
  const others = pulls.filter(({ id }) => !listed.has(id)).map(viewPull);
  return { pulls: [...ofSlots, ...others] };
}

function viewPull({ id, progress, failure }: PullListing): z.output<typeof Pulls>['pulls'][number] {
  const shown = viewProgress({ progress: progress ?? { what: id, doneBytes: 0 } }) ?? NOTHING;
  return { slot: null, model: id, failed: failure !== undefined, message: failure?.message ?? '', ...shown };
}

const NOTHING = { what: '', done_bytes: 0, total_bytes: null, bytes_per_second: null, seconds_left: null };
