/** What the process runtime knows of servers whose records, controllers, leaders or machines are gone, and what it takes for its own. */
import { spawn } from 'node:child_process';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Runtime, Workload } from '../../../src/reconciler/ports.ts';
import { WorkloadId } from '../../../src/schema/words/names.ts';
import { createProcessSystem } from '../../../src/host/process/process-monitor.ts';
import { createProcessRuntime } from '../../../src/host/process/process-runtime.ts';
import { createProcessTable } from '../../../src/host/process/process-table.ts';
import { ok } from '../../../src/schema/words/failure.ts';
import { eventually, freePort } from '../../support/runtimes/runtime-world.ts';
import { createProcessFixture, isThere, program, signal, TINY_SERVER, type ProcessFixture } from './process-fixture.ts';

describe('The process runtime, after a loss,', () => {
  let fixture: ProcessFixture;
  let stateDir: string;
  let runtime: Runtime;
  let workload: Workload;
  const open: ProcessFixture['open'] = (resolveProgram) => fixture.open(resolveProgram);
  const recordPath = () => fixture.recordPath();
  const record = async () => await fixture.record();
  const observed: ProcessFixture['observed'] = async (of) => await fixture.observed(of);
  beforeEach(async () => {
    fixture = await createProcessFixture();
    ({ stateDir, runtime, workload } = fixture);
  });
  afterEach(async () => await fixture.dispose());

  test('forgets processes that ended with the machine: a restart of it is no crash', async () => {
    await runtime.apply(workload, signal());
    const { pid, ...rest } = await record();
    await writeFile(recordPath(), JSON.stringify({ ...rest, pid, bootId: 'another boot' }));
    expect(await observed(open())).toEqual([]);
    expect(await readdir(join(stateDir, 'run'))).toEqual([]);
    process.kill(pid, 'SIGKILL');
  });

  test('a crash that was recorded before the machine was restarted stays a crash', async () => {
    await runtime.apply(workload, signal());
    const before = await record();
    process.kill(before.pid, 'SIGKILL');
    await eventually('the written exit', async () => readFile(recordPath().replace(/json$/, 'exit'), 'utf8'));
    await writeFile(recordPath(), JSON.stringify({ ...before, bootId: 'another boot' }));
    expect(await observed(open())).toMatchObject([{ phase: 'exited', exit: { code: 137 } }]);
  });

  test('a record without a boot id, which an earlier version may have written, is told by its start time', async () => {
    const applied = await runtime.apply(workload, signal());
    await writeFile(recordPath(), JSON.stringify({ ...(await record()), bootId: '' }));
    expect(await observed(open())).toMatchObject([{ id: applied.ok && applied.value, phase: 'running' }]);
  });

  test('a controller without free descriptors loses no server and no record, and starts no second server', async () => {
    const script = fileURLToPath(new URL('exhaust-descriptors.ts', import.meta.url));
    const child = spawn('prlimit', ['--nofile=1024', process.execPath, script, stateDir, TINY_SERVER, JSON.stringify(workload)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.on('data', (data: Buffer) => (output += data.toString()));
    await new Promise((resolve) => child.once('close', resolve));
    const seen = JSON.parse(output);
    expect(seen.held).toBeGreaterThan(900);
    expect(seen.before).toMatchObject([{ phase: 'running' }]);
    for (const during of seen.during) expect(during).toBe('RuntimeUnreachable');
    expect([seen.applied, seen.after, seen.records]).toEqual([false, seen.before, [`${workload.name}.json`]]);
    expect(isThere(Number(seen.before[0].id.split(':')[1]))).toBe(false);
  });

  test.each(['deleted', 'torn'])('finds a running server again whose record was %s under a running controller', async (how) => {
    const applied = await runtime.apply(workload, signal());
    const before = await record();
    await eventually('an answer', async () => (await fetch(`http://127.0.0.1:${workload.port.host}/`)).text());
    const next = open();
    expect(await observed(next)).toMatchObject([{ phase: 'running' }]);
    if (how === 'deleted') await rm(recordPath());
    else await writeFile(recordPath(), '{"name":');
    expect(await observed(next)).toMatchObject([{ id: applied.ok && applied.value, phase: 'running' }]);
    expect(await next.apply(workload, signal())).toEqual(applied);
    if (how === 'deleted') expect(await record()).toEqual(before);
    expect(isThere(before.pid)).toBe(true);
  });

  test('starts nothing beside a server that lost its record, and stops both of two servers', async () => {
    const applied = await runtime.apply(workload, signal());
    const before = await record();
    await eventually('an answer', async () => (await fetch(`http://127.0.0.1:${workload.port.host}/`)).text());
    const next = open();
    await rm(recordPath());
    expect(await next.apply(workload, signal())).toEqual(applied);
    // As an earlier version left it: another process has the record of this name.
    const port = await freePort();
    const other = createProcessRuntime({ stateDir: `${stateDir}-other`, resolveProgram: program, env: process.env });
    await mkdir(`${stateDir}-other`);
    await other.apply({ ...workload, port: { host: port, container: port } }, signal());
    const otherRecord = await readFile(join(`${stateDir}-other`, 'run', `${workload.name}.json`), 'utf8');
    await writeFile(recordPath(), otherRecord);
    const both = await observed(open());
    expect(both.map(({ phase }) => phase)).toEqual(['running', 'running']);
    const last = open();
    for (const { id } of await observed(last)) expect(await last.stop(id, { graceMs: 1000 }, signal())).toMatchObject({ ok: true });
    // Node removes an ended child from the process table a moment after its end.
    for (const pid of [before.pid, JSON.parse(otherRecord).pid])
      await eventually('the end of the server', async () => (isThere(pid) ? undefined : true));
    expect(await observed(last)).toEqual([]);
    await rm(`${stateDir}-other`, { recursive: true });
  });

  test('stopping a workload by the id of an earlier process ends nothing', async () => {
    const first = await runtime.apply(workload, signal());
    process.kill((await record()).pid, 'SIGKILL');
    await eventually('the exit', async () => (await observed()).find(({ phase }) => phase === 'exited'));
    const second = await runtime.apply(workload, signal());
    expect(second).not.toEqual(first);
    if (first.ok) expect(await runtime.stop(first.value, { graceMs: 0 }, signal())).toMatchObject({ ok: true });
    expect(await observed()).toMatchObject([{ id: second.ok && second.value, phase: 'running' }]);
    expect(isThere((await record()).pid)).toBe(true);
  });

  test.each(['checkPortFree', 'launch', 'read', 'write'])(
    'a start that is cancelled during "%s" runs nothing and leaves no record',
    async (step) => {
      const cancel = new AbortController();
      const ran = join(stateDir, 'ran');
      const real = createProcessSystem();
      const cancelAfter =
        <Arguments extends unknown[], Value>(name: string, work: (...given: Arguments) => Promise<Value>) =>
        async (...given: Arguments): Promise<Value> => {
          const value = await work(...given);
          if (name === step) cancel.abort();
          return value;
        };
      const cancelled = createProcessRuntime({
        stateDir,
        env: process.env,
        resolveProgram: () => Promise.resolve(ok(['/bin/sh', '-c', `touch ${ran}; sleep 60`, '--'])),
        system: {
          ...real,
          checkPortFree: cancelAfter('checkPortFree', real.checkPortFree),
          launch: cancelAfter('launch', real.launch),
          table: { ...real.table, read: cancelAfter('read', real.table.read) },
          files: { ...real.files, write: cancelAfter('write', real.files.write) },
        },
      });
      expect(await cancelled.apply(workload, cancel.signal)).toMatchObject({ ok: false, failure: { reason: 'Aborted' } });
      expect(await observed(open())).toEqual([]);
      expect(await stat(ran).catch(() => 'missing')).toBe('missing');
    },
  );

  test('a start that is cancelled while its program is looked up runs nothing', async () => {
    const cancel = new AbortController();
    const looking = open(async () => {
      cancel.abort();
      return ok([process.execPath, TINY_SERVER]);
    });
    expect(await looking.apply(workload, cancel.signal)).toMatchObject({ ok: false, failure: { reason: 'Aborted' } });
    expect(await observed()).toEqual([]);
    expect(await readdir(stateDir)).not.toContain('logs');
  });

  test('a launcher that never became a server is no server that ended, also where its record cannot be removed', async () => {
    const { files, ...system } = createProcessSystem();
    let disk: 'broken' | 'whole' = 'broken';
    const whenWhole = (): void => expect(disk).toBe('whole');
    const write: typeof files.write = async (...given) => await files.write(...given).then(whenWhole);
    const remove: typeof files.remove = async (path) => (whenWhole(), await files.remove(path));
    const failing = createProcessRuntime({
      stateDir,
      env: {},
      resolveProgram: program,
      system: { ...system, files: { ...files, write, remove } },
    });
    expect(await failing.apply(workload, signal())).toMatchObject({ ok: false, failure: { reason: 'StartFailed' } });
    const { pid } = await record();
    await eventually('the end of the launcher', async () => (isThere(pid) ? undefined : true));
    expect(await observed(failing)).toEqual([]);
    disk = 'whole';
    await eventually('no record', async () => (await observed(failing), (await readdir(join(stateDir, 'run'))).length === 0 || undefined));
  });

  /** A server whose controller was killed, with a child in its group, or in one of its own, that inherits its environment. */
  const startParent = async (detached: boolean): Promise<{ readonly id: WorkloadId; readonly parent: number; readonly child: number }> => {
    const file = join(stateDir, 'parent.mjs');
    const options = `{ stdio: "ignore", detached: ${detached} }`;
    const lines = [
      'import { spawn } from "node:child_process";',
      `spawn("sleep", ["600"], ${options}).on("spawn", function () { console.log("child " + this.pid) });`,
      'setInterval(() => {}, 1000);',
    ];
    await writeFile(file, lines.join('\n'));
    const id = WorkloadId.parse(await applyAndKill(file));
    const child = await eventually('the child', async () => {
      for await (const line of open().logs(id, { tail: 10, follow: false }, signal()))
        if (line.text.startsWith('child ')) return Number(line.text.slice(6));
      return undefined;
    });
    return { id, parent: (await record()).pid, child };
  };

  /** Applies the workload with a controller that is killed then. Returns the id of the workload. */
  const applyAndKill = async (file: string): Promise<string> => {
    const script = fileURLToPath(new URL('apply-and-wait.ts', import.meta.url));
    const controller = spawn(process.execPath, [script, stateDir, file, JSON.stringify(workload)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const id = await new Promise<string>((resolve) => controller.stdout.once('data', (data: Buffer) => resolve(data.toString().trim())));
    controller.kill('SIGKILL');
    await new Promise((resolve) => controller.once('exit', resolve));
    return id;
  };

  test.each([false, true])('an adopted server that dies leaves no child, in another group: %s', async (detached) => {
    const { id, parent, child } = await startParent(detached);
    const next = open();
    expect(await observed(next)).toMatchObject([{ id, phase: 'running' }]);
    process.kill(parent, 'SIGKILL');
    await eventually('the exit', async () => (await observed(next)).find(({ phase }) => phase === 'exited'));
    await eventually('the end of the child', async () => (isThere(child) ? undefined : true));
  });

  test.each([false, true])('stopping a server whose leader is gone ends its children, in another group: %s', async (detached) => {
    const { id, parent, child } = await startParent(detached);
    process.kill(parent, 'SIGKILL');
    const next = open();
    expect(await next.stop(id, { graceMs: 1000 }, signal())).toMatchObject({ ok: true });
    await eventually('the end of the child', async () => (isThere(child) ? undefined : true));
  });

  test.each([false, true])(
    'ends the child of a dead server without a record and does not take it for one, in another group: %s',
    async (detached) => {
      const { parent, child } = await startParent(detached);
      process.kill(parent, 'SIGKILL');
      await eventually('the end of the server', async () => (isThere(parent) ? undefined : true));
      await rm(join(stateDir, 'run'), { recursive: true });
      const next = open();
      expect(await observed(next)).toEqual([]);
      await eventually('the end of the child', async () => (isThere(child) ? undefined : true));
      expect(await observed(next)).toEqual([]);
    },
  );

  test('a server that the kernel killed for want of memory ran out of memory; one that somebody killed did not', async () => {
    let kills = 4;
    const counting = createProcessRuntime({
      stateDir,
      env: process.env,
      resolveProgram: program,
      system: { ...createProcessSystem(), oomKills: () => Promise.resolve(kills) },
    });
    for (const outOfMemory of [true, false]) {
      await counting.apply(workload, signal());
      kills += outOfMemory ? 1 : 0;
      process.kill((await record()).pid, 'SIGKILL');
      const ended = await eventually('the exit', async () => (await observed(counting)).find(({ phase }) => phase === 'exited'));
      expect(ended.exit).toMatchObject({ code: 137, outOfMemory });
      await eventually('its record', async () => readFile(recordPath().replace(/json$/, 'exit'), 'utf8'));
      expect(await observed(open())).toMatchObject([{ exit: { outOfMemory } }]);
    }
  });

  test('a server that the log of the kernel names ran out of memory, also where its group counts no kills', async () => {
    const asked: number[] = [];
    const system = {
      ...createProcessSystem(),
      oomKills: () => Promise.resolve(undefined),
      isKilledByKernel: (pid: number) => Promise.resolve(asked.push(pid) > 0),
    };
    const reading = createProcessRuntime({ stateDir, env: process.env, resolveProgram: program, system });
    await reading.apply(workload, signal());
    const { pid } = await record();
    process.kill(pid, 'SIGKILL');
    const ended = await eventually('the exit', async () => (await observed(reading)).find(({ phase }) => phase === 'exited'));
    expect([ended.exit, asked]).toMatchObject([{ code: 137, outOfMemory: true }, [pid]]);
  });

  test('processes of other users are not listed, whatever their environment says', async () => {
    const user = process.getuid?.() === 0 ? { uid: 65_534 } : {};
    const other = spawn('/bin/sleep', ['60'], { ...user, stdio: 'ignore', env: { INFERENCE_SVC_DEV_PROCESS: '{}' } });
    const listed = await eventually('the process', async () => (other.pid === undefined ? undefined : createProcessTable().list()));
    expect(listed).toContain(process.pid);
    expect(listed).not.toContain(process.getuid?.() === 0 ? other.pid : 1);
    other.kill('SIGKILL');
  });

  test('a script that changes variables and arguments before it starts the server is no drift', async () => {
    const script = join(stateDir, 'wrapper');
    const lines = ['#!/bin/sh', 'export ADDED=1 GREETING=changed', 'cd /tmp', `exec ${process.execPath} ${TINY_SERVER} "$@" --ignore-term`];
    await writeFile(script, `${lines.join('\n')}\n`, { mode: 0o755 });
    const wrapped = open(() => Promise.resolve(ok([script])));
    await wrapped.apply(workload, signal());
    await eventually('an answer', async () => (await fetch(`http://127.0.0.1:${workload.port.host}/`)).text());
    for (const each of [wrapped, open()])
      expect(await observed(each)).toMatchObject([{ container: { argv: workload.argv, env: workload.env } }]);
    const [found] = await observed(wrapped);
    expect(Object.keys(found?.container.env ?? {})).toEqual(Object.keys(workload.env));
  });
});
