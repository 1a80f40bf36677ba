/**
 * Who is present, with thousands of arrivals and departures a second. Not a `Set`: V8 makes a new table for a busy one every few dozen changes and lets the old
 * table point to it; once a dead one has grown old it keeps all later ones and what stood in them, and a quarter of the gateway's garbage outlived its collection.
 */

export interface Seat<T> {
  readonly item: T;
  /** -1 after leaving. */
  index: number;
}

export interface Roster<T> {
  add(item: T): Seat<T>;
  /** Twice is once. */
  remove(seat: Seat<T>): void;
  readonly size: number;
  /** A copy: those who are told something may leave meanwhile. */
  items(): readonly T[];
}

export function createRoster<T>(): Roster<T> {
  const seats: Seat<T>[] = [];
  return {
    add(item) {
      const seat = { item, index: seats.length };
      seats.push(seat);
      return seat;
    },
    remove(seat) {
      const { index } = seat;
      if (index === -1) return;
      seat.index = -1;
      const last = seats.pop();
      if (last === undefined || last === seat) return;
      seats[index] = last;
      last.index = index;
    },
    get size() {
      return seats.length;
    },
    items: () => seats.map((seat) => seat.item),
  };
}
