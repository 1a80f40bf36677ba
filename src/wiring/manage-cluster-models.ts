/** Pulls and removes models for the management API in a cluster. What is pulled there is the decision which files the pods fetch; removing a model forgets it. */
import type { Manage } from '../api/ports.ts';
import type { ClusterModelStore } from '../cluster/models/cluster-model-store.ts';
import { needsAcceptance } from '../models/decide/needs-acceptance.ts';
import type { Board } from '../reconciler/board.ts';
import { fail, ok } from '../schema/words/failure.ts';

/** How long the Hub may take to say what a name means. */
const RESOLVE_TIMEOUT_MS = 30_000;

export function manageClusterModels(
  { sources, pulls, forget }: ClusterModelStore,
  board: Pick<Board, 'current'>,
): Pick<Manage, 'pullModel' | 'removeModel' | 'pulls'> {
  return {
    pulls: () => pulls.list(),
    async pullModel(id, { acceptLicense, url }) {
      if (url !== undefined)
        return fail(
          'stalled',
          'PulledByPods',
          `Put the file of "${id}" on the volume of the pods: in a cluster, pods fetch models of the catalogue and of the Hugging Face Hub`,
        );
      const resolved = await sources.resolve(id, AbortSignal.timeout(RESOLVE_TIMEOUT_MS));
      if (!resolved.ok) return resolved;
      const entry = resolved.value;
      if (entry === undefined)
        return fail(
          'stalled',
          'ModelMissing',
          `Use a name such as "hf:owner/repo:Q4_K_M", or an id of the catalogue: nothing provides "${id}"`,
        );
      if (acceptLicense && needsAcceptance(entry, await sources.licenses.accepted())) {
        const accepted = await sources.licenses.accept(entry.license, id);
        if (!accepted.ok) return accepted;
      }
      const allowed = await sources.checkLicense(entry);
      if (allowed.ok) pulls.request(id);
      return allowed;
    },
    async removeModel(id) {
      const slots = [...board.current().slots.values()].filter(({ spec, status }) => spec?.model.default === id || status.model === id);
      if (slots.length > 0) return ok({ usedBy: slots.map(({ name }) => name) });
      const forgotten = await forget(id);
      if (!forgotten.ok) return forgotten;
      return ok(forgotten.value ? 'removed' : 'absent');
    },
  };
}
