/** Pulls, removes and searches models for the management API. */
import type { Manage, PullListing, PullStarted, SearchListing } from '../api/ports.ts';
import { filesOf, removeModel } from '../models/model-files.ts';
import { suggestModels } from '../models/decide/parse-model-name.ts';
import { storageFailure } from '../models/download/disk-room.ts';
import { sleep } from '../platform/clock.ts';
import { codeOf } from '../platform/error-text.ts';
import { needsAcceptance } from '../models/decide/explain-refusal.ts';
import type { Board } from '../reconciler/board.ts';
import { companionsOf } from '../schema/slot/model-options.ts';
import { fail, ok, type Result } from '../schema/words/failure.ts';
import type { ModelId } from '../schema/words/names.ts';
import { acceptNewFiles } from '../models/catalogue/accepted-files.ts';
import { explainMistakes, type CatalogueEntry } from '../models/catalogue/catalogue.ts';
import type { ModelSources } from '../models/model-sources.ts';
import type { DirectoryModelStore } from '../models/store.ts';
import type { RepoResult, SearchHub } from '../models/hub/search-hub.ts';
import type { FitSizes } from './fit-model.ts';
import type { World } from './world.ts';
import type { ClusterModelStore } from '../cluster/models/cluster-model-store.ts';

const RESOLVE_TIMEOUT_MS = 30_000;

type ModelManagement = Pick<Manage, 'pullModel' | 'removeModel' | 'pulls'>;

export function createModelManagement({ modelFiles: store, clusterModels }: World, board: Pick<Board, 'current'>): ModelManagement {
  if (clusterModels !== undefined) return manageClusterModels(clusterModels, board);
  const { sources, pulls } = store;

  async function slotsUsing(files: ReadonlySet<string>, id: ModelId): Promise<readonly string[]> {
    const used: string[] = [];
    for (const { name, spec, status } of board.current().slots.values()) {
      const models = [spec?.model.default, status.model, ...(spec === undefined ? [] : companionsOf(spec))].filter(
        (each) => each !== undefined,
      );
      const paths = await Promise.all(models.map(async (model) => (await filesOf(store, model)).map((file) => file.path)));
      if (models.includes(id) || paths.flat().some((file) => files.has(file))) used.push(name);
    }
    return used;
  }

  async function requestPull(id: ModelId, options: Parameters<Manage['pullModel']>[1]): Promise<Result<PullStarted | undefined>> {
    const { acceptLicense, acceptNew, url, sha256 } = options;
    const signal = AbortSignal.timeout(RESOLVE_TIMEOUT_MS);
    if (url !== undefined && sha256 !== undefined) {
      // Imported when it is needed, because undici is large.
      const { pinUrl } = await import('../models/model-sources.ts');
      const pinned = await pinUrl(sources, { id, url, sha256 }, signal);
      if (!pinned.ok) return pinned;
    }
    // The user has edited the entry since the version that is in force, and wants to have what he wrote.
    const mistakes = store.catalogue.problemsOf?.(id) ?? [];
    if (mistakes.length > 0) return fail('stalled', 'CatalogueInvalid', explainMistakes(id, mistakes));
    const resolved = await sources.resolve(id, signal);
    if (!resolved.ok) return resolved;
    if (resolved.value !== undefined) {
      const isThere = (await store.observe([id], signal)).get(id)?.kind === 'present';
      const accepted = acceptNew === true && !isThere ? await acceptNewFiles(sources, resolved.value, signal) : ok([]);
      if (!accepted.ok) return accepted;
      const requested = await requestEntry(store, id, resolved.value, acceptLicense);
      return requested.ok ? ok({ accepted: accepted.value }) : requested;
    }
    const present = (await store.observe([id], signal)).get(id)?.kind === 'present';
    return present ? ok(undefined) : fail('stalled', 'ModelMissing', `${nothingProvides(id)}${suggestModels(id, store.catalogue.keys())}`);
  }

  return {
    pulls: (): readonly PullListing[] => pulls.list(),
    async pullModel(id, request) {
      return await requestPull(id, request).catch((error: unknown) => {
        if (!/^E[A-Z]+$/.test(codeOf(error))) throw error;
        return { ok: false, failure: storageFailure(store.root, error) };
      });
    },
    async removeModel(id): Promise<Result<'removed' | 'absent' | { readonly usedBy: readonly string[] }>> {
      const files = new Set((await filesOf(store, id)).map((file) => file.path));
      const usedBy = await slotsUsing(files, id);
      if (usedBy.length > 0) return ok({ usedBy });
      const cancelled = pulls.cancel(id);
      // A download that was cancelled still writes what it has received.
      for (let waits = 0; waits < 100 && pulls.list().some((pull) => pull.id === id); waits += 1) await sleep(20);
      const removed = await removeModel(store, id);
      return ok(removed !== undefined || cancelled ? 'removed' : 'absent');
    },
  };
}

const nothingProvides = (id: ModelId): string =>
  `Nothing provides "${id}": use a name such as "hf:owner/repo:Q4_K_M", or an id of the catalogue`;

async function requestEntry(
  { sources, pulls }: Pick<DirectoryModelStore, 'pulls'> & { readonly sources: Pick<ModelSources, 'licenses' | 'checkLicense'> },
  id: ModelId,
  entry: CatalogueEntry,
  acceptLicense: boolean,
): Promise<Result<void>> {
  if (acceptLicense && needsAcceptance(entry, await sources.licenses.accepted())) {
    const accepted = await sources.licenses.accept(entry.license, id);
    if (!accepted.ok) return accepted;
  }
  const allowed = await sources.checkLicense(entry);
  if (allowed.ok) pulls.request(id);
  return allowed;
}

/** In a cluster, a pull decides which files the pods fetch, and removing a model forgets that decision. */
export function manageClusterModels(store: ClusterModelStore, board: Pick<Board, 'current'>): ModelManagement {
  return {
    pulls: () => store.pulls.list(),
    async pullModel(id, { acceptLicense, acceptNew, url }) {
      if (acceptNew === true) {
        const message = `In a cluster, nobody can accept a new file of "${id}": add it to "models.toml" with "override = true"`;
        return fail('stalled', 'PulledByPods', message);
      }
      if (url !== undefined) {
        const message = `In a cluster, pods fetch models of the catalogue and the Hugging Face Hub only: put the file of "${id}" on their volume`;
        return fail('stalled', 'PulledByPods', message);
      }
      const resolved = await store.sources.resolve(id, AbortSignal.timeout(RESOLVE_TIMEOUT_MS));
      if (!resolved.ok) return resolved;
      if (resolved.value === undefined) return fail('stalled', 'ModelMissing', nothingProvides(id));
      const requested = await requestEntry(store, id, resolved.value, acceptLicense);
      return requested.ok ? ok(undefined) : requested;
    },
    async removeModel(id) {
      const slots = [...board.current().slots.values()].filter(({ spec, status }) => spec?.model.default === id || status.model === id);
      if (slots.length > 0) return ok({ usedBy: slots.map(({ name }) => name) });
      const forgotten = await store.forget(id);
      if (!forgotten.ok) return forgotten;
      return ok(forgotten.value ? 'removed' : 'absent');
    },
  };
}

const SEARCH_IS_OFF = 'Models cannot be searched here: "SVC_MODEL_SEARCH" is "off"; name a repository in a slot, such as "hf:owner/repo"';

interface Searching {
  readonly isOff: boolean;
  /** Milliseconds on a monotonic clock. */
  readonly now: () => number;
  readonly fitSizes: FitSizes;
}

export function createModelSearch(
  { modelFiles, clusterModels }: Pick<World, 'modelFiles' | 'clusterModels'>,
  { isOff, now, fitSizes }: Searching,
): Pick<Manage, 'searchModels'> {
  const { licenses } = (clusterModels ?? modelFiles).sources;
  let opened: Promise<SearchHub> | undefined;
  return {
    async searchModels(request) {
      if (isOff) return fail('stalled', 'ModelSourceRefused', SEARCH_IS_OFF);
      // Imported when it is needed, because undici is large.
      opened ??= import('../models/hub/search-hub.ts').then(({ createHubSearch }) => createHubSearch(modelFiles.sources.hub, now));
      const page = await (await opened)(request);
      if (!page.ok) return page;
      const { found, next } = page.value;
      const [accepted, fitOf] = await Promise.all([licenses.accepted(), found.length === 0 ? undefined : fitSizes()]);
      return ok({ models: found.map((repo) => describeRepo(repo, accepted, fitOf)), next });
    },
  };
}

function describeRepo(
  { repo, models, ...found }: RepoResult,
  accepted: ReadonlySet<string>,
  fitOf: Awaited<ReturnType<FitSizes>>,
): SearchListing['models'][number] {
  return {
    ...found,
    id: repo,
    gated: found.isGated,
    needsAcceptance: needsAcceptance(found, accepted),
    quantisations: models.map(({ uri, quantisation, model, projector, sizeBytes }) => {
      const fit = fitOf?.(sizeBytes);
      return {
        uri,
        quantisation,
        files: model.map(({ path }) => path),
        sizeBytes,
        neededBytes: fit && Math.round(fit.neededBytes),
        fits: fit?.fits,
        projector: projector?.path,
      };
    }),
  };
}
