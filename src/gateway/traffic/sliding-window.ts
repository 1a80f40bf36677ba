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
  /** Amounts of all parts but the current one. */
  readonly #parts = new Float64Array(KEPT);
  #total = 0;
  /** Number of the current part since time 0, its amount, and its end: most calls come before that. */
  #newest = 0;
  #current = 0;
  #until: number;

  constructor(periodMs: number) {
    this.#partMs = periodMs / PARTS;
    this.#until = this.#partMs;
  }

  add(amount: number, now: number): void {
    this.#advance(now);
    this.#current += amount;
    this.#total += amount;
  }

  /** What counts, each amount followed by the milliseconds until it is forgotten: see `include()`. */
  counts(now: number): readonly number[] {
    this.#advance(now);
    const counts: number[] = [];
    for (let part = this.#newest - PARTS; part <= this.#newest; part += 1) {
      const amount = this.#amountOf(part);
      if (amount !== 0) counts.push(amount, Math.ceil((part + KEPT) * this.#partMs - now));
    }
    return counts;
  }

  /** Adds what another window counts, `agoMs` after it said so. It counts for one part longer at most. */
  include(counts: readonly number[], agoMs: number, now: number): void {
    this.#advance(now);
    for (let index = 0; index < counts.length; index += 2) {
      const [amount = 0, ms = 0] = counts.slice(index, index + 2);
      // Milliseconds were rounded up.
      const part = Math.min(this.#newest, Math.ceil((now + ms - agoMs - 1) / this.#partMs) - KEPT);
      if (part < this.#newest - PARTS) continue;
      this.#total += amount;
      if (part === this.#newest) this.#current += amount;
      else this.#parts[indexOf(part)] = this.#amountOf(part) + amount;
    }
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
      total -= this.#amountOf(part);
      if (total <= most) return (part + KEPT) * this.#partMs - now;
    }
    return 0;
  }

  /** Milliseconds until nothing is left, if nothing is added, or after something is added now. */
  emptyMs(now: number, isAdding = false): number {
    this.#advance(now);
    if (isAdding) return (this.#newest + KEPT) * this.#partMs - now;
    for (let part = this.#newest; part >= this.#newest - PARTS; part -= 1) {
      if (this.#amountOf(part) !== 0) return (part + KEPT) * this.#partMs - now;
    }
    return 0;
  }

  #amountOf(part: number): number {
    return part === this.#newest ? this.#current : (this.#parts[indexOf(part)] ?? 0);
  }

  #advance(now: number): void {
    if (now < this.#until) return;
    const current = Math.floor(now / this.#partMs);
    if (current <= this.#newest) return;
    this.#parts[indexOf(this.#newest)] = this.#current;
    const first = Math.max(this.#newest + 1, current - PARTS);
    for (let part = first; part <= current; part += 1) {
      this.#total -= this.#parts[indexOf(part)] ?? 0;
      this.#parts[indexOf(part)] = 0;
    }
    this.#newest = current;
    this.#current = 0;
    this.#until = (current + 1) * this.#partMs;
  }
}

/** Parts before time 0 have negative numbers. */
const indexOf = (part: number): number => ((part % KEPT) + KEPT) % KEPT;
