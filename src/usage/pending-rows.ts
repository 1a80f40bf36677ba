/** Counts finished requests in rows that wait to be stored, of bounded number. */
import type { FinishedRequest } from '../gateway/exchange-deps.ts';
import { COUNTS, noCounts, OTHERS, type UsageRow } from './decide/usage-rows.ts';

const LEAST_ERROR = 400;
/** So many callers of an hour get rows of their own, and those that come later share one. */
const CALLERS_OF_HOUR = 10_000;
/** So many rows wait in memory while they cannot be stored: about 5 MB. Requests of further callers share rows. */
const MOST_ROWS = 20_000;
/** Names come from headers and from documents of slots. */
const NAME_CHARACTERS = 200;

/** Rows that wait to be stored. */
export class PendingRows {
  readonly #rows = new Map<string, UsageRow>();
  /** Callers of the last hour seen, and no other. */
  readonly #callers = new Map<number, Set<string>>();

  get size(): number {
    return this.#rows.size;
  }

  /** `model`: that of the slot at the time. */
  add({ slot: reached, caller = '', status, seconds, parkedSeconds = 0, tokens }: FinishedRequest, hour: number, model: string): void {
    const slot: string = reached ?? '';
    const row = this.#rowOf(hour, this.#known(caller, hour), { slot, model });
    row.requests += 1;
    if (status >= LEAST_ERROR) row.errors += 1;
    row.queueMs += msOf(parkedSeconds);
    if (slot !== '') row.busyMs += msOf(seconds - parkedSeconds);
    if (tokens === undefined) return;
    row.input += tokens.input;
    row.cached += tokens.cached ?? 0;
    row.output += tokens.output;
    if (tokens.isEstimated === true) row.estimated += 1;
  }

  take(): readonly UsageRow[] {
    const rows = [...this.#rows.values()];
    this.#rows.clear();
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
    if (callers.size >= CALLERS_OF_HOUR && !callers.has(caller)) return OTHERS;
    callers.add(caller);
    return caller;
  }

  #rowOf(hour: number, caller: string, { slot, model }: Pick<UsageRow, 'slot' | 'model'>): UsageRow {
    const key = `${hour}\n${caller}\n${slot}\n${model}`;
    const known = this.#rows.get(key);
    if (known !== undefined) return known;
    if (this.#rows.size >= MOST_ROWS && caller !== OTHERS) return this.#rowOf(hour, OTHERS, { slot, model });
    if (this.#rows.size >= 2 * MOST_ROWS && slot !== OTHERS) return this.#rowOf(hour, OTHERS, { slot: OTHERS, model: OTHERS });
    const row = { hour, caller: nameOf(caller), slot: nameOf(slot), model: nameOf(model), ...noCounts() };
    this.#rows.set(key, row);
    return row;
  }
}

/** Time that is no number would spoil a whole sum. */
const msOf = (seconds: number): number => Math.max(0, Math.round(seconds * 1000)) || 0;

const nameOf = (text: string): string => text.slice(0, NAME_CHARACTERS).toWellFormed();
