/** The last log lines of a workload that failed are kept with its failure, and with no other. */
import type { WorkloadId } from '../../../../src/schema/words/names.ts';
import type { Rule } from './rule.ts';

export const judgeLogs: Rule = ({ wrong }) => {
  const read = new Map<WorkloadId, Set<string>>();
  return {
    logged: (id, text) => void read.set(id, (read.get(id) ?? new Set()).add(text)),
    planned({ observed, now }) {
      for (const [slot, { failures }] of observed.attempts) {
        for (const { kind, workload, logTail, at } of failures) {
          if (workload === undefined || kind === 'vanish') continue;
          const busy = observed.running.has(`stop:${workload}`) || observed.running.has(`noteCrash:${workload}`);
          const own = (logTail ?? []).every(({ text }) => read.get(workload)?.has(text) === true);
          if (!own) wrong(`A failure of "${slot}" shows the log lines of another workload than "${workload}"`);
          if (!busy && now > at && logTail === undefined) wrong(`A failure of "${slot}" shows no log lines of "${workload}"`);
        }
      }
    },
  };
};
