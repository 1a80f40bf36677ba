/** Failures that count towards a crash loop outlive their controller: the status lists them, and the next controller knows what was recorded. */
import type { RecordedFailures, RecordedFailure } from '../../../../src/schema/status/slot-status.ts';
import type { SlotName } from '../../../../src/schema/words/names.ts';
import type { Attempt } from '../../../../src/reconciler/decide/facts/facts.ts';
import type { Planned } from '../journal.ts';
import { countsOn, type Rule } from './rule.ts';
import { isSameValue } from '../../../../src/schema/words/same-value.ts';
import type { DesiredSlot } from '../../../../src/reconciler/ports.ts';

const KINDS: ReadonlySet<string> = new Set(['crash', 'probe', 'start-timeout']);
const MOST = 10;
const LONGEST_MESSAGE = 300;

export const judgeRecords: Rule = ({ world, wrong }) => {
  let recorded: ReadonlyMap<SlotName, RecordedFailures> = new Map();
  /** The slots whose failures they are. */
  let describes: ReadonlyMap<SlotName, DesiredSlot> = new Map();
  /** What was read in the first pass and at the beginning of each term. */
  const everRead = new Map<SlotName, Set<string>>();
  /** What each slot's status must list, as of the last plan. */
  let due = new Map<SlotName, readonly Attempt[]>();
  /** When failures were recorded first, by their text. */
  let times = new Map<string, number>();

  function judgeRecalled({ desired, observed }: Planned): void {
    for (const [name, { failures }] of observed.attempts) {
      for (const attempt of failures) {
        const text = textOf(attempt, attempt.recordedAt);
        if (attempt.recordedAt !== undefined && everRead.get(name)?.has(text) !== true)
          wrong(`A failure of "${name}" is said to be recorded, and is not: ${text}`);
      }
      const { failures: all = [] } = recorded.get(name) ?? {};
      const slot = desired.slots.get(name);
      if (!recalls || slot === undefined) continue;
      const of = describes.get(name);
      // What was declared again as it had been, where nothing but its text identifies it, is the same slot.
      if (!countsOn(of, slot) && !isSameValue([of?.uid, of?.spec], [slot.uid, slot.spec])) {
        const inherited = failures.find(({ recordedAt }) => recordedAt !== undefined);
        if (inherited !== undefined) wrong(`Slot "${name}" inherits a failure of another one: ${textOf(inherited, inherited.recordedAt)}`);
        continue;
      }
      // A follower counts crashes in place itself, and keeps its own count where it is not smaller.
      if (failures.length < all.length) wrong(`Of ${all.length} recorded failures of "${name}", ${failures.length} are known`);
    }
  }
  let recalls = false;
  let asked = false;
  let led = false;
  return {
    recalling: () => void (asked = true),
    recalled(all) {
      recorded = all;
      describes = new Map(world.statusesOf());
      for (const [name, { failures = [] }] of all)
        everRead.set(name, new Set([...(everRead.get(name) ?? []), ...failures.map(listedText)]));
      recalls = true;
    },
    planned(planned) {
      judgeRecalled(planned);
      if (planned.observed.leads && !led && !asked) wrong('A controller began to act and did not read what was recorded before');
      led = planned.observed.leads;
      asked = false;
      recalls = false;
      due = new Map(
        [...planned.observed.attempts].map(([name, { failures }]) => [name, failures.filter(({ kind }) => KINDS.has(kind)).slice(-MOST)]),
      );
    },
    published(view) {
      const before = times;
      times = new Map();
      for (const [name, { status }] of view.slots) {
        const listed = status.failures ?? [];
        const attempts = due.get(name) ?? [];
        if (listed.length !== attempts.length)
          wrong(`Slot "${name}" failed ${attempts.length} times, and its status lists ${listed.length}`);
        for (const [index, attempt] of attempts.entries()) {
          const key = `${name} ${attempt.at} ${textOf(attempt, attempt.recordedAt)} ${attempt.workload}`;
          const at = before.get(key) ?? attempt.recordedAt ?? view.at;
          times.set(key, at);
          const text = listed[index] === undefined ? 'nothing' : listedText(listed[index]);
          if (text !== textOf(attempt, at)) wrong(`The status of "${name}" lists ${text} instead of ${textOf(attempt, at)}`);
        }
      }
    },
  };
};

function listedText({ at, kind, reason, message }: RecordedFailure): string {
  return `${at} ${kind} ${reason} ${message}`;
}

function textOf(
  { kind, failure }: { readonly kind: string; readonly failure: { readonly reason: string; readonly message: string } },
  at: number | undefined,
): string {
  return `${at} ${kind} ${failure.reason} ${failure.message.slice(0, LONGEST_MESSAGE)}`;
}
