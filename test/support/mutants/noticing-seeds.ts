/**
 * Worlds that noticed the mutants when they were recorded. Each is tried first, which saves most of the time. When the
 * simulation has changed and a world no longer notices its mutant, the ordinary worlds follow, as without a record.
 * `SVC_RECORD_SEEDS=1 npm test -- test/simulation/mutants test/simulation/program-mutants` records them anew.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const RECORD = fileURLToPath(new URL('../../simulation/noticing-seeds.json', import.meta.url));

export type NoticingSeeds = Readonly<Record<string, number>>;

/** Seeds by fault. */
export function readNoticingSeeds(): NoticingSeeds {
  const recording = process.env['SVC_RECORD_SEEDS'] !== undefined;
  return recording || !existsSync(RECORD) ? {} : JSON.parse(readFileSync(RECORD, 'utf8'));
}

/** `found`: the first seed that noticed each fault. Without `SVC_RECORD_SEEDS`, prints how many records no longer hold. */
export function recordNoticingSeeds(found: ReadonlyMap<string, number>): void {
  if (process.env['SVC_RECORD_SEEDS'] !== undefined) {
    const known: NoticingSeeds = existsSync(RECORD) ? JSON.parse(readFileSync(RECORD, 'utf8')) : {};
    const all = Object.entries({ ...known, ...Object.fromEntries(found) }).toSorted(([a], [b]) => (a < b ? -1 : 1));
    return writeFileSync(RECORD, `${JSON.stringify(Object.fromEntries(all), undefined, 2)}\n`);
  }
  const known = readNoticingSeeds();
  const missed = [...found].filter(([fault, seed]) => known[fault] !== undefined && known[fault] !== seed).length;
  if (missed > 0) process.stdout.write(`Recorded worlds that did not notice their mutant: ${missed} of ${found.size}\n`);
}
