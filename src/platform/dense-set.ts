/**
 * An array-backed set whose members are removed in constant time: the last member takes the free place. It is not a
 * `Set`, because V8 reallocates the table of a busy one every few dozen changes and links the old tables to the new
 * ones, which kept a quarter of the gateway's garbage alive past its collection.
 */

export interface Member<T> {
  readonly item: T;
  /** Position in the array; -1 once removed. */
  index: number;
}

export type DenseSet<T> = ReturnType<typeof createDenseSet<T>>;

export function createDenseSet<T>() {
  const members: Member<T>[] = [];
  return {
    add(item: T) {
      const member: Member<T> = { item, index: members.length };
      members.push(member);
      return member;
    },
    /** Does nothing for a member that has been removed already. */
    remove(member: Member<T>) {
      const { index } = member;
      if (index === -1) return;
      member.index = -1;
      const last = members.pop();
      if (last === undefined || last === member) return;
      members[index] = last;
      last.index = index;
    },
    get size() {
      return members.length;
    },
    /** A copy, so that members may be removed while a caller iterates. */
    items: () => members.map((member) => member.item),
  };
}
