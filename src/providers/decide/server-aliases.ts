/** The names of a slot's model as an argument of its server. Pure. */
import type { SlotSpec } from '../../schema/slot/slot-spec.ts';

/** Separated by commas; responses contain the first one. An alias with a comma would be split, so it is left out. */
export function serverAliases({ model }: Pick<SlotSpec, 'model'>): string {
  return [model.default, ...model.aliases.filter((alias) => !alias.includes(','))].join(',');
}
