/** Only the leader changes the world, and what it had begun ends with its term. */
import type { Call } from '../journal.ts';
import type { Rule } from './rule.ts';

export const judgeLeaders: Rule = (context) => {
  const { life, wrong } = context;
  const followers = judgeFollowers(context);
  let led = life.leads();
  let reportsBefore = 0;
  let renewing = false;
  let begun = false;
  return {
    ...followers,
    planned({ observed, now }) {
      if (observed.leads && !led) renewing = true;
      reportsBefore = life.reports.length;
      // What a controller learned of failures belongs to its own term. In its first pass, it knows what was recorded before.
      const kept =
        begun && led && !observed.leads && observed.attempts.values().some(({ failures }) => failures.some(({ at }) => at < now));
      if (kept) wrong('A controller that no longer leads keeps the failures of its term');
      led = observed.leads;
      begun = true;
    },
    look() {
      if (renewing && life.reports.length === reportsBefore) wrong('A new leader did not report everything');
      renewing = false;
      followers.look?.();
    },
  };
};

/** The part that holds also for a pass that pauses between planning and acting. */
export const judgeFollowers: Rule = ({ life, wrong }) => ({
  called(call) {
    if (changes(call) && !life.leads() && !call.signal.aborted) wrong(`A follower asked for "${call.key}"`);
  },
  look() {
    if (life.leads()) return;
    for (const call of life.journal.open) {
      if (changes(call) && !call.signal.aborted) wrong(`"${call.key}" goes on although another controller leads`);
    }
  },
});

function changes({ name }: Call): boolean {
  return name === 'apply' || name === 'stop' || name === 'pullImage' || name === 'pullModel';
}
