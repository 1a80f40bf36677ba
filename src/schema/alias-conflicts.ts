/**
 * Names that clients may send and that more than one slot claims. Requests still go somewhere: to the slot of that name, or to any of those that are ready.
 * Two slots with the same model are no conflict, and a slot that is not enabled takes part in none. Pure.
 */

export interface NamedSlot {
  readonly name: string;
  readonly enabled: boolean;
  readonly model: string;
  readonly aliases: readonly string[];
}

/** One sentence for each conflict of a slot, by slot. Slots without one have no entry. */
export function findAliasConflicts(slots: readonly NamedSlot[]): ReadonlyMap<string, readonly string[]> {
  const conflicts = new Map<string, readonly string[]>();
  const enabled = slots.filter((slot) => slot.enabled);
  if (enabled.every(({ aliases }) => aliases.length === 0)) return conflicts;
  const names = new Set(enabled.map(({ name }) => name));
  const ofModel = Map.groupBy(enabled, ({ model }) => model);
  const pairs = enabled.flatMap((slot) => [...new Set(slot.aliases)].map((alias) => ({ alias, slot })));
  const ofAlias = Map.groupBy(pairs, ({ alias }) => alias);
  for (const slot of enabled) {
    const sentences = [...new Set(slot.aliases)].flatMap((alias) => {
      if (alias === slot.name || alias === slot.model) return [];
      if (names.has(alias)) return [`Use another alias than "${alias}": requests for it go to the slot of that name`];
      const others = [...(ofModel.get(alias) ?? []), ...(ofAlias.get(alias) ?? []).map((pair) => pair.slot)];
      const rivals = [...new Set(others.map(({ name }) => name))].filter((name) => name !== slot.name).toSorted();
      if (rivals.length === 0) return [];
      return [`Use another alias than "${alias}": requests for it go to this slot or to ${rivals.map((name) => `"${name}"`).join(', ')}`];
    });
    if (sentences.length > 0) conflicts.set(slot.name, sentences);
  }
  return conflicts;
}
