/** Faults in the loop, in how it senses and in when it passes. */
import type { Mutant } from '../support/mutants/mutant.ts';

const LOOP = 'src/reconciler/loop.ts';
const PASS = 'src/reconciler/plan-pass.ts';
const OBSERVE = 'src/reconciler/observe.ts';
const PACER = 'src/reconciler/pacer.ts';
const DESIRE = 'src/reconciler/remember/desire.ts';
const PLANS = 'src/reconciler/remember/remember-plans.ts';
const MERGE = 'src/reconciler/remember/merge-observation.ts';

export const LOOP_MUTANTS: readonly Mutant[] = [
  {
    fault: 'begins the observation after observing',
    file: LOOP,
    find: 'if (signal.aborted) return NOT_PASSED;\n    const seenAt',
    replace: 'if (signal.aborted) return NOT_PASSED;\n    tracker.beginObservation();\n    const seenAt',
  },
  {
    fault: 'never begins an observation',
    file: LOOP,
    find: '    tracker.beginObservation();\n',
    replace: '',
  },
  {
    fault: 'takes a source that cannot be read for an empty one',
    file: LOOP,
    find: 'if (read.ok) desired = read.value;',
    replace: 'desired = read.ok ? read.value : { slots: new Map(), refused: new Map() };\n    if (read.ok) desired = read.value;',
  },
  {
    fault: 'forgets the models while the store does not answer',
    file: LOOP,
    find: 'models = seen.models ?? models;',
    replace: 'models = seen.models ?? new Map();',
  },
  {
    fault: 'goes on with its actions when another controller leads',
    worlds: 'clusters',
    file: LOOP,
    find: '        if (!leads()) executor.abandon();\n',
    replace: '',
  },
  {
    fault: 'keeps its failures when another controller leads',
    worlds: 'clusters',
    file: LOOP,
    find: '    for (const name of tracker.attempts.all.keys()) tracker.attempts.clearFailures(name);\n',
    replace: '',
  },
  {
    fault: 'does not report everything when it begins to lead',
    worlds: 'clusters',
    file: LOOP,
    find: 'if (leading) return reporter.renew();',
    replace: 'if (leading) return;',
  },
  {
    fault: 'reports what the last leader stopped as vanished',
    worlds: 'clusters',
    file: PASS,
    find: 'if (!state.slots.has(slot) || !leading || takesOver) continue;',
    replace: 'if (!state.slots.has(slot) || !leading) continue;',
  },
  {
    fault: 'does not count a workload that vanished',
    file: PASS,
    find: "      tracker.attempts.failed(slot, { kind: 'vanish', failure: { kind: 'retry', reason: 'Vanished', message }, workload: id }, now);\n",
    replace: '',
  },
  {
    fault: 'does not tell of a workload that vanished',
    file: PASS,
    find: "      reporter.note(slot, { kind: 'failure', message }, clock.wallNow());\n",
    replace: '',
  },
  {
    fault: 'forgets what drains while the runtime is unreachable',
    file: PASS,
    find: "  if (observed.runtime.kind === 'unreachable') return;\n",
    replace: '',
  },
  {
    fault: 'does not note that workloads of removed slots drain',
    file: PASS,
    find: 'flatMap(({ draining }) => draining), ...made.orphans.keys()]',
    replace: 'flatMap(({ draining }) => draining)]',
  },
  {
    fault: 'forgets failures that are not over',
    file: PASS,
    find: ' && decisions.get(name)?.stable === true) yield',
    replace: ') yield',
  },
  {
    fault: 'lets a follower act',
    worlds: 'clusters',
    file: PASS,
    find: 'const actions = leading ? sound.actions : sound.actions.filter((action) => !changesWorld(action));',
    replace: 'const { actions } = sound;',
  },
  {
    fault: 'does not pass when an action has ended',
    file: LOOP,
    find: "    pacer.wake(outcome.kind === 'done' && tracker.underWay.size > MANY_UNDER_WAY ? ONE_OF_MANY_WITHIN_MS : 0);\n",
    replace: '',
  },
  {
    fault: 'does not listen to the model store',
    file: LOOP,
    find: '[deps.source, runtime, deps.models, traffic]',
    replace: '[deps.source, runtime, traffic]',
  },
  {
    fault: 'carries out what was overtaken while it paused',
    worlds: 'paused',
    file: LOOP,
    find: 'carryOut(isOvertaken ? inOneGo(partsAs(present)) : planned, present)',
    replace: 'carryOut(planned, present)',
  },
  {
    fault: 'does not remember its last plan',
    file: LOOP,
    find: '    ({ decisions } = outcome.plan);\n',
    replace: '',
  },
  {
    fault: 'does not wait for its actions when it ends',
    file: LOOP,
    find: '      await executor.close();\n',
    replace: '',
  },
  {
    fault: 'writes no report',
    file: LOOP,
    find: 'if (report !== undefined) for',
    replace: 'if (report === undefined) for',
  },
  {
    fault: 'waits without end for the source',
    file: OBSERVE,
    find: 'await within(ANSWER_WITHIN_MS, signal, async (own) => await source.read(own))',
    replace: 'await source.read(signal)',
  },
  {
    fault: 'waits without end for the runtime',
    file: OBSERVE,
    find: 'within(ANSWER_WITHIN_MS, signal, async (own) => await runtime.observe([...images.values()], own))',
    replace: 'runtime.observe([...images.values()], signal)',
  },
  {
    fault: 'waits without end for the model store',
    file: OBSERVE,
    find: 'within(ANSWER_WITHIN_MS, signal, async (own) => await models.observe([...ids], own))',
    replace: 'models.observe([...ids], signal)',
  },
  {
    fault: 'waits without end for the host',
    file: OBSERVE,
    find: 'within(ANSWER_WITHIN_MS, signal, async (own) => await host.read(own))',
    replace: 'host.read(signal)',
  },
  {
    fault: 'fails with its host',
    file: OBSERVE,
    find: '.catch(() => NOTHING_KNOWN)',
    replace: '',
  },
  {
    fault: 'fails with its model store',
    file: OBSERVE,
    find: '.catch(() => undefined)',
    replace: '',
  },
  {
    fault: 'takes a runtime that throws for an empty one',
    file: OBSERVE,
    find: "runtime.observe([...images.values()], own)).catch(failed('RuntimeUnreachable'))",
    replace:
      'runtime.observe([...images.values()], own)).catch((error: unknown) => ({ ok: true as const, value: { workloads: [], images: [], error } }))',
  },
  {
    fault: 'does not pass unless it is woken',
    file: PACER,
    find: 'Math.min(dueAt, now + resyncMs, passed.wakeAt',
    replace: 'Math.min(dueAt, passed.wakeAt',
  },
  {
    fault: 'does not pass when its plan asks for it',
    file: PACER,
    find: 'now + resyncMs, passed.wakeAt ?? Number.POSITIVE_INFINITY)',
    replace: 'now + resyncMs)',
  },
  {
    fault: 'loses a wake that comes during a pass',
    file: PACER,
    find: 'dueAt = Math.min(dueAt, now + resyncMs,',
    replace: 'dueAt = Math.min(now + resyncMs,',
  },
  {
    fault: 'passes without a pause',
    file: PACER,
    find: 'Math.max(notBefore, Math.min(dueAt, Math.max(patientDueAt, patientNotBefore)))',
    replace: 'Math.min(dueAt, patientDueAt)',
  },
  {
    fault: 'counts the memory of its own host in a cluster',
    worlds: 'clusters',
    file: DESIRE,
    find: "runtime.traits.network === 'pods' ? undefined : memoryTotalBytes",
    replace: 'memoryTotalBytes',
  },
  {
    fault: 'ignores the memory budget of the settings',
    file: DESIRE,
    find: 'settings.SVC_MEMORY_BUDGET ?? (',
    replace: '(',
  },
  {
    fault: 'remembers templates of another image or model',
    file: DESIRE,
    find: 'templates.get(slot.name, slot, model, image, more)',
    replace:
      "templates.get(slot.name, slot, { ...model, id: slot.spec.model.default, hostPath: '/store/' + slot.spec.model.default, sizeBytes: 1000 }, image, more)",
  },
  {
    fault: 'remembers plans beyond their time',
    file: PLANS,
    find: ' && present.now < last.rest.until',
    replace: '',
  },
  {
    fault: 'remembers plans whatever the workloads are',
    file: 'src/reconciler/decide/facts/slot-facts.ts',
    find: 'return after.workloads.every((workload, index) =>',
    replace: 'return after.workloads.length > 0 || after.workloads.every((workload, index) =>',
  },
  {
    fault: 'remembers plans of slots that are not at rest',
    file: PLANS,
    find: 'plan.atRest ? {',
    replace: 'plan.actions.length === 0 ? {',
    worlds: 'compared',
  },
  {
    fault: 'does not recall failures',
    file: MERGE,
    find: '  for (const [name, failures] of recalled) tracker.attempts.recall(name, failures);\n',
    replace: '',
  },
  {
    fault: 'does not read the records when it begins to lead',
    worlds: 'clusters',
    file: LOOP,
    find: 'passedAt === undefined || (leads() && !led) ? await recall(signal) : undefined',
    replace: 'passedAt === undefined || leads() ? (passedAt === undefined ? await recall(signal) : new Map()) : undefined',
  },
  {
    fault: 'waits without end for the records',
    file: OBSERVE,
    find: 'await within(ANSWER_WITHIN_MS, signal, read).catch(',
    replace: 'await read(signal).catch(',
  },
  {
    fault: 'fails with its records',
    file: OBSERVE,
    find: "signal, read).catch(failed('InternalError'))",
    replace: 'signal, read)',
  },
  {
    fault: 'takes everything for vanished while the runtime is unreachable',
    file: MERGE,
    find: 'seen.runtime.ok ? tracker.observe(all, now) : []',
    replace: 'tracker.observe(all, now)',
  },
  {
    fault: 'does not load a slot again that is edited after its idle time',
    file: MERGE,
    find: "edit: edits.get(name) ?? 'unchanged'",
    replace: "edit: 'unchanged'",
  },
  {
    fault: 'keeps what it knows of removed slots',
    file: MERGE,
    find: '  tracker.keepOnly(slots);\n',
    replace: '',
  },
  {
    fault: 'does not see which requests wait',
    file: MERGE,
    find: 'demand: traffic.demand,',
    replace: 'demand: new Map(),',
  },
];
