import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ObservedWorkload } from '../../../src/reconciler/ports.ts';
import { createProcessRuntime } from '../../../src/host/process/process-runtime.ts';
import { describeRuntimeContract } from '../../support/runtimes/runtime-contract.ts';
import { eventually, occupyPort, tinyWorkload, type RuntimeWorld } from '../../support/runtimes/runtime-world.ts';
import { isThere, program, TINY_SERVER } from './process-fixture.ts';

async function createProcessWorld(): Promise<RuntimeWorld> {
  const stateDir = await mkdtemp(join(tmpdir(), 'svc-process-'));
  const open = () =>
    createProcessRuntime({
      stateDir,
      resolveProgram: program,
      env: { ...process.env, SVC_PROXY_SECRET: 'must not be seen by children' },
    });
  const runtime = open();
  const recordOf = (name: string): string => join(stateDir, 'run', `${name}.json`);
  const pidOf = async (workload: ObservedWorkload): Promise<number> => JSON.parse(await readFile(recordOf(workload.name), 'utf8')).pid;
  return {
    runtime,
    real: true,
    reopen: open,
    workload: (choice) => tinyWorkload(choice, { host: '127.0.0.1', port: choice.port }),
    async exit(workload, code) {
      await fetch(`http://127.0.0.1:${workload.endpoints[0]?.port}/exit/${code}`);
    },
    async crash(workload) {
      process.kill(await pidOf(workload), 'SIGKILL');
    },
    async vanish(workload) {
      const pid = await pidOf(workload);
      process.kill(pid, 'SIGKILL');
      // The runtime restores the record of a server that still runs, and a busy machine takes a while to end it.
      await eventually('the server has ended', () => Promise.resolve(isThere(pid) ? undefined : true));
      await rm(recordOf(workload.name));
    },
    async alter(workload) {
      const record = JSON.parse(await readFile(recordOf(workload.name), 'utf8'));
      process.kill(record.pid, 'SIGKILL');
      const child = spawn(process.execPath, [TINY_SERVER, ...record.argv.slice(1)], {
        detached: true,
        stdio: 'ignore',
        env: { GREETING: 'altered' },
      });
      child.unref();
      const stat = await readFile(`/proc/${child.pid}/stat`, 'utf8');
      await writeFile(recordOf(workload.name), JSON.stringify({ ...record, pid: child.pid, start: stat.split(' ')[21] }));
    },
    async occupy(port) {
      const taken = await occupyPort(port);
      return () => taken.close();
    },
    async dispose() {
      const signal = AbortSignal.timeout(20_000);
      const left = await open().observe([], signal);
      for (const workload of left.ok ? left.value.workloads : []) await runtime.stop(workload.id, { graceMs: 0 }, signal);
      await rm(stateDir, { recursive: true, force: true });
    },
  };
}

describeRuntimeContract('The process runtime', createProcessWorld);
