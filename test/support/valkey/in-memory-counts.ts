/** What the counting script does, without a server: both pass `test/gateway/limits/counting-script.test.ts`. */
import type { CountReport } from '../../../src/gateway/limits/counting-script.ts';

interface Entry {
  readonly at: number;
  readonly seq: number;
  readonly counts: readonly (readonly number[])[];
}

/** Returns what the script replies, or throws its error. `now`: milliseconds of the server. */
export function createInMemoryCounts(now: () => number) {
  const hashes = new Map<string, Map<string, Entry>>();

  function sumOf({ counts }: Pick<Entry, 'counts'>, ageMs: number): readonly number[] {
    return [0, 1, 2, 3].map((limit) => {
      const list = counts[limit] ?? [];
      return list.reduce((sum, amount, index) => (index % 2 === 0 && (list[index + 1] ?? 0) > ageMs ? sum + amount : sum), 0);
    });
  }

  return {
    forget: (): void => hashes.clear(),
    async count(key: string, holder: string, seqText: string, reportText: string): Promise<unknown> {
      const seq = Number(seqText);
      const at = now();
      const report: CountReport = JSON.parse(reportText);
      const hash = hashes.get(key) ?? new Map<string, Entry>();
      hashes.set(key, hash);
      const own = hash.get(holder);
      if (own !== undefined && own.seq >= seq) throw new Error('SVC a later report has come before');
      const others: string[] = [];
      let sums = sumOf(report, 0);
      for (const [name, before] of hash) {
        if (name === holder) continue;
        const entry = { ...before, at: Math.min(before.at, at) };
        hash.set(name, entry);
        const ageMs = at - entry.at;
        const sum = sumOf(entry, ageMs);
        if (sum.every((each) => each === 0)) hash.delete(name);
        else others.push(JSON.stringify({ agoMs: ageMs, counts: entry.counts }));
        sums = sums.map((each, limit) => each + (sum[limit] ?? 0));
      }
      const free = report.limits.map((most, limit) => most - (sums[limit] ?? 0) - (report.need[limit] ?? 0));
      const isOver = (limit: number): boolean =>
        (report.limits[limit] ?? -1) >= 0 && (report.need[limit] ?? 0) > 0 && (free[limit] ?? 0) < 0;
      const over = [0, 1, 2, 3].findIndex(isOver) + 1;
      const extra = free.map((left, limit) =>
        over > 0 || (report.limits[limit] ?? -1) < 0 ? 0 : Math.max(0, Math.floor((left * report.part) / (others.length + 1))),
      );
      const granted = report.need.map((need, limit) => (over > 0 ? 0 : need + (extra[limit] ?? 0)));
      const counts = report.counts.map((list, limit) => {
        const amount = granted[limit] ?? 0;
        return amount > 0 ? [...list, amount, report.keepMs[limit] ?? 0] : list;
      });
      hash.set(holder, { at, seq, counts });
      return [over, extra, own === undefined ? 0 : 1, others];
    },
  };
}
