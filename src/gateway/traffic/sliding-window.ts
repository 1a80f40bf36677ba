/**
 * The sum of amounts in the last period. The period has 60 parts, and a part is forgotten as a whole, after all of it
 * is older than the period: what is counted is never less than the sum, and for one part longer at most. Times are
 * monotonic milliseconds.
 */
const PARTS = 60;
/** The part that has begun counts besides. */
const KEPT = PARTS + 1;

export class SlidingWindow {
  readonly #partMs: number;
  readonly #parts = new Float64Array(KEPT);
  #total = 0;
  /** Number of the current part since time 0. */
  #newest = 0;

  constructor(periodMs: number) {
    this.#partMs = periodMs / PARTS;
  }

  add(amount: number, now: number): void {
    this.#advance(now);
    const index = this.#newest % KEPT;
    this.#parts[index] = (this.#parts[index] ?? 0) + amount;
    this.#total += amount;
  }

  total(now: number): number {
    this.#advance(now);
    return this.#total;
  }

  /** Milliseconds until the sum is at most `most`, if nothing is added. 0: it is. */
  waitMs(most: number, now: number): number {
    this.#advance(now);
    let total = this.#total;
    for (let part = this.#newest - PARTS; part <= this.#newest; part += 1) {
      if (total <= most) return 0;
      total -= this.#at(part);
      if (total <= most) return (part + KEPT) * this.#partMs - now;
    }
    return 0;
  }

  /** Milliseconds until nothing is left, if nothing is added. */
  emptyMs(now: number): number {
    this.#advance(now);
    for (let part = this.#newest; part >= this.#newest - PARTS; part -= 1) {
      if (this.#at(part) !== 0) return (part + KEPT) * this.#partMs - now;
    }
    return 0;
  }

  #at(part: number): number {
    return this.#parts[((part % KEPT) + KEPT) % KEPT] ?? 0;
  }

  #advance(now: number): void {
    const current = Math.floor(now / this.#partMs);
    if (current <= this.#newest) return;
    const first = Math.max(this.#newest + 1, current - PARTS);
    for (let part = first; part <= current; part += 1) {
      this.#total -= this.#at(part);
      this.#parts[part % KEPT] = 0;
    }
    this.#newest = current;
  }
}
