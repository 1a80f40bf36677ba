/**
 * A controller that runs out of descriptors: applies a workload, lets a second runtime adopt it, and observes, applies and stops while no file can be opened.
 * Prints what it saw as JSON. Arguments: state directory, program, the workload as JSON.
 */
import { closeSync, openSync, readdirSync } from 'node:fs';
import { createProcessRuntime } from '../../../src/host/process/process-runtime.ts';
import { ok } from '../../../src/schema/words/failure.ts';

const [stateDir = '', program = '', text = ''] = process.argv.slice(2);
const workload = JSON.parse(text);
const signal = AbortSignal.timeout(20_000);
const open = () =>
  createProcessRuntime({ stateDir, env: process.env, resolveProgram: () => Promise.resolve(ok([process.execPath, program])) });
const summary = (facts: Awaited<ReturnType<ReturnType<typeof open>['observe']>>) =>
  facts.ok ? facts.value.workloads.map(({ id, phase, exit }) => ({ id, phase, exit: exit?.message })) : facts.failure.reason;
// Whatever is imported on first use is imported before.
const keepAlive = setInterval(() => undefined, 1000);
await open().apply(workload, signal);
const adopted = open();
const before = summary(await adopted.observe([], signal));

const held: number[] = [];
for (;;) {
  try {
    held.push(openSync('/dev/null', 'r'));
  } catch {
    break;
  }
}
const during = [summary(await adopted.observe([], signal)), summary(await open().observe([], signal))];
const applied = await open().apply(workload, signal);
for (const fd of held) closeSync(fd);
const after = summary(await open().observe([], signal));
const records = readdirSync(`${stateDir}/run`);
for (const runtime of [adopted, open()]) {
  const facts = await runtime.observe([], signal);
  for (const { id } of facts.ok ? facts.value.workloads : []) await runtime.stop(id, { graceMs: 2000 }, signal);
}
process.stdout.write(JSON.stringify({ held: held.length, before, during, applied: applied.ok, after, records }));
clearInterval(keepAlive);
process.exit(0);
