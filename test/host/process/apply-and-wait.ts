/** A controller that the test kills: applies one workload, prints its id, and waits. Arguments: state directory, program, the workload as JSON. */
import { createProcessRuntime } from '../../../src/host/process/process-runtime.ts';
import { ok } from '../../../src/schema/words/failure.ts';

const [stateDir = '', program = '', workload = ''] = process.argv.slice(2);
const runtime = createProcessRuntime({
  stateDir,
  env: process.env,
  resolveProgram: () => Promise.resolve(ok([process.execPath, program])),
});
const applied = await runtime.apply(JSON.parse(workload), AbortSignal.timeout(10_000));
process.stdout.write(`${applied.ok ? applied.value : applied.failure.message}\n`);
setInterval(() => undefined, 1000);
