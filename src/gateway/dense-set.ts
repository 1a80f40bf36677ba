/**
 * Who is present, with thousands of arrivals and departures a second. Not a `Set`: V8 makes a new table for a busy one every few dozen changes and lets the old
 * table point to it; once a dead one has grown old it keeps all later ones and what stood in them, and a quarter of the gateway's garbage outlived its collection.
 */

export interface Member<T> {
  readonly item: T;
  /** -1 after leaving. */
  index: number;
}

export interface DenseSet<T> {
  add(item: T): Member<T>;
  /** Twice is once. */
  remove(member: Member<T>): void;
  readonly size: number;
  /** A copy: those who are told something may leave meanwhile. */
  items(): readonly T[];
}

export function createDenseSet<T>(): DenseSet<T> {
  const members: Member<T>[] = [];
  return {
    add(item) {
      const member = { item, index: members.length };
      members.push(member);
      return member;
    },
    remove(member) {
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
    items: () => members.map((member) => member.item),
  };
}
