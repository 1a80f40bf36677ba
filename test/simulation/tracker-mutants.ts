/** Faults in what the loop remembers, and regressions of the rules that rely on it. */
import type { Mutant } from '../support/mutants/mutant.ts';

const TRACKER = 'src/reconciler/tracker.ts';
const HISTORIES = 'src/reconciler/remember/workload-histories.ts';
const ATTEMPTS = 'src/reconciler/tracker.ts';

export const TRACKER_MUTANTS: readonly Mutant[] = [
  {
    fault: 'forgets an action that ends while it observes',
    file: TRACKER,
    find: '      if (running !== undefined) ended.set(key, running);\n',
    replace: '',
  },
  {
    fault: 'takes actions that have ended for running',
    file: TRACKER,
    find: '      ended.clear();\n',
    replace: '',
  },
  {
    fault: 'takes what it started before for what runs',
    file: TRACKER,
    find: 'origins.get(slot)?.revision === revision ? origins.get(slot)?.origin : undefined',
    replace: 'origins.get(slot)?.origin ?? (revision === undefined ? undefined : undefined)',
  },
  {
    fault: 'does not expect a workload to go that it stops',
    file: TRACKER,
    find: "      if (action.name === 'stop') histories.stopBegun(action.args.workload);\n",
    replace: '',
  },
  {
    fault: 'begins a drain again while the stop is under way',
    file: TRACKER,
    find: 'histories.markDraining(draining, findStopping(), now)',
    replace: 'histories.markDraining(draining, new Set(), now)',
  },
  {
    fault: 'keeps the failures of a removed slot',
    file: TRACKER,
    find: '        attempts.forget(name);\n',
    replace: '',
  },
  {
    fault: 'does not count starts',
    file: TRACKER,
    find: "      attempts.started(slot, origins.get(slot)?.revision ?? '', now);\n",
    replace: '',
  },
  {
    fault: 'begins a drain again after a stop that failed while it observed',
    file: TRACKER,
    find: ', ...ended.values()];\n    return new Set(running.flatMap',
    replace: '];\n    return new Set(running.flatMap',
  },
  {
    fault: 'stops a workload during its start',
    file: 'src/reconciler/decide/steps/plan-stops.ts',
    find: 'isBeingApplied(workload, view) || ',
    replace: '',
  },
  {
    fault: 'does not mark a started workload as fresh',
    file: HISTORIES,
    find: 'startCountsFrom: undefined, fresh: true }',
    replace: 'startCountsFrom: undefined }',
  },
  {
    fault: 'takes every workload for fresh',
    file: HISTORIES,
    find: 'for (const [id, { fresh }] of all) if (fresh) change(id, () => ({ fresh: false }));',
    replace: '',
  },
  {
    fault: 'begins a drain again in each pass',
    file: HISTORIES,
    find: 'if (drainingSince === undefined) change',
    replace: 'change',
  },
  {
    fault: 'drains what no longer has to go',
    file: HISTORIES,
    find: ' else if (drainingSince !== undefined && !stopping.has(id)) change(id, () => ({ drainingSince: undefined }));',
    replace: '',
  },
  {
    fault: 'forgets probes when it observes again',
    file: HISTORIES,
    find: 'mergeSeen(all.get(each.id), each, originOf(each), now)',
    replace: 'mergeSeen(now % 3 === 0 ? undefined : all.get(each.id), each, originOf(each), now)',
  },
  {
    fault: 'keeps the failures of a slot that was removed and made again',
    file: ATTEMPTS,
    find: 'classifyEdit(before, { uid, generation, spec, paused })',
    replace: "before?.generation === generation ? 'unchanged' : classifyEdit(before, { uid, generation, spec, paused })",
  },
  {
    fault: 'forgets failures when a slot is scaled',
    file: ATTEMPTS,
    find: "else change(name, () => ({ generation, ...(edit === 'scaled-up' ? { startLog: [] } : {}) }));",
    replace: 'else all.set(name, { generation, failures: [], repairs: undefined, starts: 0 });',
  },
  {
    fault: 'takes an edit that also scales for one that only scales',
    file: 'src/reconciler/decide/facts/slot-edit.ts',
    find: "isSameExcept(before.spec, after.spec, 'cluster') && ",
    replace: '',
  },
  {
    fault: 'does not wait longer after each failure',
    file: ATTEMPTS,
    find: '[...failures, failure].slice(-KEPT)',
    replace: '[failure]',
  },
  {
    fault: 'counts each start twice',
    file: ATTEMPTS,
    find: 'starts: starts + 1,',
    replace: 'starts: starts + 2,',
  },
  {
    fault: 'does not count the start of a workload that it found',
    worlds: 'clusters',
    file: ATTEMPTS,
    find: 'Math.max(starts, 1) + 1',
    replace: 'starts + 1',
  },
  {
    fault: 'shows the log lines of one failure at all of them',
    file: ATTEMPTS,
    find: 'attempt.workload === workload && attempt.at === at ? { ...attempt, logTail: lines } : attempt',
    replace: 'attempt.at <= at && workload !== undefined ? { ...attempt, logTail: lines } : attempt',
  },
  {
    fault: 'keeps its repairs after an edit',
    file: ATTEMPTS,
    find: '{ generation, failures: [], repairs: undefined, starts: 0 }',
    replace: '{ generation, failures: [], repairs: all.get(name)?.repairs, starts: 0 }',
  },
  {
    fault: 'does not wait longer after each repair',
    file: ATTEMPTS,
    find: 'times: (repairs?.times ?? 0) + 1,',
    replace: 'times: Math.min(1, (repairs?.times ?? 0) + 1),',
  },
  {
    fault: 'repairs without a pause',
    file: 'src/reconciler/decide/rules/repair.ts',
    find: 'at !== undefined && at <= view.now',
    replace: 'at !== undefined',
  },
  {
    fault: 'keeps its failures after an edit',
    file: ATTEMPTS,
    find: '{ generation, failures: [], repairs: undefined, starts: 0 }',
    replace: '{ generation, failures: all.get(name)?.failures ?? [], repairs: undefined, starts: 0 }',
  },
  {
    fault: 'does not note when it started what',
    file: ATTEMPTS,
    find: 'startLog: [...startLog, { revision, at: now }].slice(-KEPT)',
    replace: 'startLog',
  },
];
