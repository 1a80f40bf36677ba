/** Counts finished requests in rows that wait to be stored, of bounded number. */
import type { FinishedRequest } from '../gateway/exchange-deps.ts';
import type { Price } from '../schema/slot/scaling.ts';
import type { Caused } from '../schema/status/slot-status.ts';
import { costOf, COUNTS, noCounts, OTHERS, type UsageRow } from './decide/usage-rows.ts';

const LEAST_ERROR = 400;
export interface RowLimits {
  /** So many callers of an hour get rows of their own, and those that come later share one. */
  readonly callers: number;
  /** With more rows, requests of further callers share rows; with twice as many, also those to further slots. */
  readonly rows: number;
}

/** About 5 MB while nothing can be stored. */
const DEFAULT_LIMITS: RowLimits = { callers: 10_000, rows: 20_000 };
/** Names come from headers and from documents of slots. */
const NAME_CHARACTERS = 200;

/** What a slot was when a request to it ended. */
export interface SlotFacts {
  readonly model?: string | undefined;
  readonly price?: Price | undefined;
  /** Energy that the request has used; most requests learn it after their end. */
  readonly milliJoules?: number | undefined;
}

/** Rows that wait to be stored. */
export class PendingRows {
  readonly #rows = new Map<string, UsageRow>();
  /** The last row of each caller, which most of its requests add to. */
  readonly #last = new Map<string, UsageRow>();
  /** Callers of the last hour seen, and no other. */
  readonly #callers = new Map<number, Set<string>>();
  readonly #limits: RowLimits;

  constructor(limits = DEFAULT_LIMITS) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#rows.size;
  }

  add(finished: FinishedRequest, hour: number, { model = '', price, milliJoules = 0 }: SlotFacts = {}): void {
    const { slot: reached, caller = '', status, seconds, parkedSeconds = 0, tokens, media } = finished;
    const slot: string = reached ?? '';
    const row = this.#rowFor(hour, caller, { slot, model, currency: price?.currency ?? '' });
    row.requests += 1;
    if (status >= LEAST_ERROR) row.errors += 1;
    row.queueMs += msOf(parkedSeconds);
    if (slot !== '') row.busyMs += msOf(seconds - parkedSeconds);
    if (price !== undefined) row.nanos += costOf(finished, price);
    if (media?.audioSeconds !== undefined) row.audioMs += msOf(media.audioSeconds);
    row.images += media?.images ?? 0;
    row.milliJoules += milliJoules;
    if (tokens === undefined) return;
    row.input += tokens.input;
    row.cached += tokens.cached ?? 0;
    row.output += tokens.output;
    if (tokens.isEstimated === true) row.estimated += 1;
  }

  addCaused({ slot, caller, what }: Caused, hour: number, { model = '', price }: SlotFacts = {}): void {
    this.#rowFor(hour, caller, { slot, model, currency: price?.currency ?? '' })[what] += 1;
  }

  take(): readonly UsageRow[] {
    const rows = [...this.#rows.values()];
    this.#rows.clear();
    this.#last.clear();
    return rows;
  }

  /** Puts rows back that could not be stored. */
  putBack(rows: readonly UsageRow[]): void {
    for (const row of rows) {
      const sum = this.#rowOf(row.hour, row.caller, row);
      for (const count of COUNTS) sum[count] += row[count];
    }
  }

  rows(): readonly UsageRow[] {
    return [...this.#rows.values()];
  }

  /** The clock may be set back: the callers of an hour are counted anew then, which costs rows and nothing else. */
  #known(caller: string, hour: number): string {
    let callers = this.#callers.get(hour);
    if (callers === undefined) {
      callers = new Set();
      this.#callers.clear();
      this.#callers.set(hour, callers);
    }
    if (callers.size >= this.#limits.callers && !callers.has(caller)) return OTHERS;
    callers.add(caller);
    return caller;
  }

  #rowFor(hour: number, caller: string, names: Pick<UsageRow, 'slot' | 'model' | 'currency'>): UsageRow {
    const last = this.#last.get(caller);
    if (last?.hour === hour && last.slot === names.slot && last.model === names.model && last.currency === names.currency) return last;
    const row = this.#rowOf(hour, this.#known(caller, hour), names);
    if (row.caller === caller) this.#last.set(caller, row);
    return row;
  }

  #rowOf(hour: number, caller: string, { slot, model, currency }: Pick<UsageRow, 'slot' | 'model' | 'currency'>): UsageRow {
    const key = `${hour}\n${caller}\n${slot}\n${model}\n${currency}`;
    const known = this.#rows.get(key);
    if (known !== undefined) return known;
    const { rows: most } = this.#limits;
    if (this.#rows.size >= most && caller !== OTHERS) return this.#rowOf(hour, OTHERS, { slot, model, currency });
    if (this.#rows.size >= 2 * most && slot !== OTHERS) return this.#rowOf(hour, OTHERS, { slot: OTHERS, model: OTHERS, currency });
    const names = { caller: nameOf(caller), slot: nameOf(slot), model: nameOf(model), currency };
    // No two rows have the same names: each is a series of its own in the metrics.
    if (names.caller !== caller || names.model !== model) return this.#rowOf(hour, names.caller, names);
    const row = { hour, ...names, ...noCounts() };
    this.#rows.set(key, row);
    return row;
  }
}

/** Time that is no number would spoil a whole sum. */
const msOf = (seconds: number): number => Math.max(0, Math.round(seconds * 1000)) || 0;

const nameOf = (text: string): string => text.slice(0, NAME_CHARACTERS).toWellFormed();
