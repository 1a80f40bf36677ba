/** Faults in how actions are carried out, and in what is reported. */
import type { Mutant } from '../support/mutants/mutant.ts';

const EXECUTE = 'src/reconciler/execute.ts';
const ASK = 'src/reconciler/ask-servers.ts';
const ROLES = 'src/reconciler/decide/rules/assign-roles.ts';
const REPORT = 'src/reconciler/report.ts';

export const ACTION_MUTANTS: readonly Mutant[] = [
  {
    fault: 'charges the failure of a shared download to one slot only',
    file: EXECUTE,
    find: 'for (const slot of deps.waitingFor(key))',
    replace: 'for (const slot of [action.slot])',
  },
  {
    fault: 'counts a cancelled download as a failure',
    file: EXECUTE,
    find: '  if (signal.aborted) return NONE;\n  for (const slot of',
    replace: '  for (const slot of',
  },
  {
    fault: 'does not cancel a download',
    file: EXECUTE,
    find: '      aborts.get(action.args.key)?.abort();\n',
    replace: '',
  },
  {
    fault: 'cancels a download again and again',
    file: EXECUTE,
    find: '      deps.tracker.cancelled(action.args.key);\n',
    replace: '',
  },
  {
    fault: 'does not count a start that failed',
    file: EXECUTE,
    find: "  tracker.attempts.failed(slot, { kind: 'apply', failure }, clock.now());\n  return",
    replace: '  return',
  },
  {
    fault: 'does not count a start whose adapter threw',
    file: EXECUTE,
    find: "  if (action.name === 'apply') tracker.attempts.failed(action.slot, { kind: 'apply', failure }, clock.now());\n",
    replace: '',
  },
  {
    fault: 'does not count a stop whose adapter threw',
    file: EXECUTE,
    find: "  if (action.name === 'stop') tracker.histories.stopFailed(action.args.workload, failure.message, clock.now());\n",
    replace: '',
  },
  {
    fault: 'counts a start that another leader took over',
    worlds: 'clusters',
    file: EXECUTE,
    find: "  if (signal.aborted) return NONE;\n  if (failure.reason === 'PortTaken')",
    replace: "  if (failure.reason === 'PortTaken')",
  },
  {
    fault: 'tries a port again that is taken',
    file: EXECUTE,
    find: "  if (failure.reason === 'PortTaken') tracker.portTaken(workload.port.host, clock.now());\n",
    replace: '',
  },
  {
    fault: 'does not remember what it started',
    file: EXECUTE,
    find: 'if (updatesInPlace === undefined) tracker.started(result.value, slot, now);',
    replace: 'if (updatesInPlace === undefined) return DONE;',
  },
  {
    fault: 'counts an update as a repair',
    worlds: 'clusters',
    file: EXECUTE,
    find: 'if (updatesInPlace?.altered === true) tracker',
    replace: 'if (updatesInPlace !== undefined) tracker',
  },
  {
    fault: 'does not count a restart in place',
    worlds: 'clusters',
    file: EXECUTE,
    find: '  if (startsAgain) tracker.attempts.restartedInPlace(slot);\n',
    replace: '',
  },
  {
    fault: 'does not note a crash in place',
    worlds: 'clusters',
    file: EXECUTE,
    find: '  tracker.histories.exitNoted(workload, exitId);\n',
    replace: '',
  },
  {
    fault: 'repeats a failed stop without a pause',
    file: EXECUTE,
    find: '  tracker.histories.stopFailed(workload, result.failure.message, clock.now());\n',
    replace: '',
  },
  {
    fault: 'counts a server as crashed that ended after a stop which failed',
    file: ROLES,
    find: 'const signalled = known.stops !== undefined && exited;',
    replace: 'const signalled = false;',
  },
  {
    fault: 'stops a workload with its requests',
    file: EXECUTE,
    find: '  if (args.abort) traffic.abort(workload);\n',
    replace: '',
  },
  {
    fault: 'does not count a fault for which it stops a workload',
    file: EXECUTE,
    find: "tracker.attempts.failed(slot, { kind, failure: { kind: 'retry', reason, message }, workload, port }, now);",
    replace: 'void [kind, reason, message];',
  },
  {
    fault: 'keeps no log lines of a crash',
    file: EXECUTE,
    find: "failure !== undefined && failure.kind !== 'drift'",
    replace: 'failure === undefined',
  },
  {
    fault: 'waits without end for log lines',
    file: EXECUTE,
    find: 'await within(LOG_TAIL_WITHIN_MS, signal, read)',
    replace: 'await read(signal)',
  },
  {
    fault: 'fails with the logs of a workload',
    file: EXECUTE,
    find: '  await within(LOG_TAIL_WITHIN_MS, signal, read).catch(() => undefined);',
    replace: '  await within(LOG_TAIL_WITHIN_MS, signal, read);',
  },
  {
    fault: 'does not remember the results of probes that fail',
    file: EXECUTE,
    find: 'tracker.histories.probed(args.workload,',
    replace: "if (health.kind === 'passing') tracker.histories.probed(args.workload,",
  },
  {
    fault: 'gives up with a probe that throws',
    file: ASK,
    find: '.catch(failing)',
    replace: '',
  },
  {
    fault: 'publishes that a slot is in its state since now',
    file: REPORT,
    find: 'before?.decision.state === state ? before.since : now',
    replace: 'before?.decision === decision ? before.since : now',
  },
  {
    fault: 'publishes that conditions changed that did not',
    file: REPORT,
    find: 'stampConditions(decision.conditions, before?.conditions ?? [], generation, now)',
    replace: 'stampConditions(decision.conditions, [], generation, now)',
  },
  {
    fault: 'reports entries of the timeline twice',
    file: REPORT,
    find: '      pending = [];\n      caused',
    replace: '      caused',
  },
  {
    fault: 'does not report statuses that changed',
    file: REPORT,
    find: ' || changes.some(({ before, after }) => before?.status !== after.status);',
    replace: ';',
  },
  {
    fault: 'reports that a failed action was done',
    file: REPORT,
    find: "if (outcome.kind === 'done') add",
    replace: "if (outcome.kind === 'done' || outcome.failure !== undefined) add",
  },
  {
    fault: 'does not report why it stops a faulty workload',
    file: REPORT,
    find: "if (action.name === 'stop' && action.args.failure !== undefined) {",
    replace: "if (action.name === 'stop' && action.args.abort && action.args.failure !== undefined) {",
  },
  {
    fault: 'relies on the state of a slot that it never saw',
    file: REPORT,
    find: 'seen: seen || before?.seen === true,',
    replace: 'seen: true,',
  },
  {
    fault: 'publishes the status of an earlier pass',
    file: REPORT,
    find: 'const status = reuse(last?.status, statusOf(inputs.slot, inputs.facts, published, failures));',
    replace: 'const status = last?.status ?? statusOf(inputs.slot, inputs.facts, published, failures);',
  },
  {
    fault: 'reports moves twice',
    file: REPORT,
    find: '      moves = [];\n      changed',
    replace: '      changed',
  },
  {
    fault: 'keeps the old times of a slot that was removed',
    file: REPORT,
    find: '[...resuming.keys()].filter((name) => !desired.slots.has(name) && !desired.refused.has(name))',
    replace: '[]',
  },
  {
    fault: 'takes a restart for a transition',
    file: REPORT,
    find: 'const resuming = new Map(earlier);',
    replace: 'const resuming = new Map(earlier.size < 0 ? earlier : []);',
  },
  {
    fault: 'begins the times of a slot again after an outage during a restart',
    file: REPORT,
    find: 'earlier !== undefined && publication.seen && ',
    replace: 'earlier !== undefined && ',
  },
  {
    fault: 'keeps the times of before after it has done something to the slot',
    file: REPORT,
    find: '      if (changesWorld(action)) resuming.delete(slot);\n',
    replace: '',
  },
  {
    fault: 'records failures again and again',
    file: REPORT,
    find: 'recordFailures(inputs.facts.failures, last?.recorded ?? [], now)',
    replace: 'recordFailures(inputs.facts.failures, [], now)',
  },
  {
    fault: 'records one of several failures of the same time',
    file: 'src/reconciler/decide/facts/recorded-failures.ts',
    find: 'return counted.slice(-MOST_RECORDED);',
    replace: 'return counted.slice(-MOST_RECORDED).filter((each, index, all) => all[index - 1]?.attempt.at !== each.attempt.at);',
  },
  {
    fault: 'does not count a repair by a new workload',
    file: EXECUTE,
    find: "if (kind === 'drift') tracker.attempts.repaired(slot, workload, now);\n    else",
    replace: "if (kind !== 'drift')",
  },
  {
    fault: 'counts the failure of an action that it gave up',
    file: EXECUTE,
    find: '  if (signal.aborted) return NONE;\n  const failure: Failure',
    replace: '  const failure: Failure',
    worlds: 'clusters',
  },
];
