/** Why a slot is loaded ahead of requests is true: it has the entry that is named, which holds now, or learns. */
import type { Finding } from '../../../../src/schema/words/failure.ts';
import type { DesiredSlot } from '../../../../src/reconciler/ports.ts';
import type { Rule } from './rule.ts';

const NAMES = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];

export const judgeAhead: Rule = ({ world, wrong }) => ({
  planned({ plan, desired }) {
    for (const { name, findings } of plan.decisions.values())
      for (const finding of findings) {
        const slot = desired.slots.get(name);
        if (slot !== undefined && !isTrue(slot, finding, world.clock.wallNow()))
          wrong(`Slot "${name}" is not loaded because: ${finding.message}`);
      }
  },
});

function isTrue({ spec }: DesiredSlot, { reason, message }: Finding, wallNow: number): boolean {
  if (reason === 'WarmForecast') return spec.lifecycle.prewarm === 'learned';
  if (reason !== 'WarmScheduled') return true;
  const [, entry = '', timeZone = ''] = /: "(.*)" in time zone "(.*)"$/.exec(message) ?? [];
  return spec.lifecycle.warm.includes(entry) && holds(entry, timeZone, wallNow);
}

/** As a reader compares it with a clock on the wall. */
function holds(entry: string, timeZone: string, wallNow: number): boolean {
  const [today = '', time = ''] = new Date(wallNow)
    .toLocaleString('en-GB', { timeZone, weekday: 'short', hour: '2-digit', minute: '2-digit' })
    .split(/,? /);
  const [times = '', days = NAMES.join()] = entry.split(' ').toReversed();
  const [from = '', to = ''] = times.split('-');
  const yesterday = NAMES.at(NAMES.indexOf(today) - 1) ?? '';
  const begins = (day: string): boolean => days.split(',').some((part) => isWithin(day, part));
  if (from < to) return begins(today) && time >= from && time < to;
  return (begins(today) && time >= from) || (begins(yesterday) && time < to);
}

function isWithin(day: string, part: string): boolean {
  const [first = '', last = first] = part.split('-');
  const from = NAMES.indexOf(first);
  const daysFrom = (name: string): number => (NAMES.indexOf(name) - from + NAMES.length) % NAMES.length;
  return daysFrom(day) <= daysFrom(last);
}
