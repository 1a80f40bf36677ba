/** A state directory for the process runtime, one workload for it, and what tests look at. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createProcessRuntime } from '../../../src/host/process/process-runtime.ts';
import { ok } from '../../../src/schema/words/failure.ts';
import { freePort, tinyWorkload } from '../../support/runtimes/runtime-world.ts';

export const TINY_SERVER = fileURLToPath(new URL('tiny-server.mjs', import.meta.url));
export const program = () => Promise.resolve(ok([process.execPath, TINY_SERVER]));

/** For one call of the runtime. */
export const signal = () => AbortSignal.timeout(20_000);

export const isThere = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

export type ProcessFixture = Awaited<ReturnType<typeof createProcessFixture>>;

export async function createProcessFixture() {
  const stateDir = await mkdtemp(join(tmpdir(), 'svc-process-'));
  const open = (resolveProgram = program) => createProcessRuntime({ stateDir, resolveProgram, env: process.env });
  const runtime = open();
  const port = await freePort();
  const workload = tinyWorkload({ port }, { host: '127.0.0.1', port });
  const recordPath = () => join(stateDir, 'run', `${workload.name}.json`);
  const observed = async (of = runtime) => {
    const facts = await of.observe([], signal());
    return facts.ok ? facts.value.workloads : [];
  };
  return {
    stateDir,
    open,
    runtime,
    workload,
    recordPath,
    record: async () => JSON.parse(await readFile(recordPath(), 'utf8')),
    observed,
    async dispose(): Promise<void> {
      for (const each of await observed()) await runtime.stop(each.id, { graceMs: 0 }, signal());
      await rm(stateDir, { recursive: true, force: true });
    },
  };
}
