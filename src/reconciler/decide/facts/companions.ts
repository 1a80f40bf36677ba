/** Models that the server of a slot loads beside its own: its draft model and its adapters. Pure. */
import type { ModelFacts } from '../../../providers/provider.ts';
import { companionsOf } from '../../../schema/slot/model-options.ts';
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';
import type { ModelId } from '../../../schema/words/names.ts';
import type { ModelPresence } from '../../ports.ts';

/**
 * The model of a slot, and those that its server loads beside it, in their order. Where one of these is not present,
 * its presence stands for that of the slot's model.
 */
export function lookUpModels(
  spec: SlotSpec,
  model: ModelPresence | undefined,
  models: ReadonlyMap<ModelId, ModelPresence> | undefined,
): { readonly model: ModelPresence | undefined; readonly companions?: readonly ModelFacts[] } {
  const ids = companionsOf(spec);
  if (ids.length === 0 || model?.kind !== 'present') return { model };
  const companions: ModelFacts[] = [];
  for (const id of ids) {
    const presence = models?.get(id);
    if (presence?.kind === 'pullable') return { model: { ...presence, companion: id } };
    if (presence?.kind !== 'present') return { model: presence };
    const message = `In a cluster, pods fetch only "model.default": put the file of "${id}" on the volume of the models`;
    if (presence.facts.pinnedBy !== undefined) return { model: { kind: 'missing', message } };
    companions.push(presence.facts);
  }
  return { model, companions };
}

/** A server is outdated if any of its files was replaced. */
export function withCompanions(
  { model, companions = [] }: { readonly model: ModelFacts; readonly companions?: readonly ModelFacts[] | undefined },
  inWorkload: (path: string) => string,
): ModelFacts {
  if (companions.length === 0) return model;
  const versions = [model, ...companions].map(({ version }) => version);
  return {
    ...model,
    ...(versions.includes(undefined) ? {} : { version: versions.join(' ') }),
    companions: companions.map((each) => ({ ...each, hostPath: inWorkload(each.hostPath) })),
  };
}
