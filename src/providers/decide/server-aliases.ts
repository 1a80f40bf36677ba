/** The names of a slot's model as an argument of its server. Pure. */
import type { SlotSpec } from '../../schema/slot/slot-spec.ts';

/** Responses contain the first. Aliases with a comma would be split, and are left out. */
export const serverAliases = ({ model }: Pick<SlotSpec, 'model'>): string =>
  [model.default, ...model.aliases.filter((alias) => !alias.includes(','))].join(',');
