/** The behaviour of the process runtime beyond the contract that all runtimes share. */
import { spawn } from 'node:child_process';
import { mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Runtime, Workload } from '../../../src/reconciler/ports.ts';
import { createProcessRuntime } from '../../../src/host/process/process-runtime.ts';
import { fail, ok } from '../../../src/schema/words/failure.ts';
import { eventually, freePort } from '../../support/runtimes/runtime-world.ts';
import { createProcessFixture, isThere, program, signal, TINY_SERVER, type ProcessFixture } from './process-fixture.ts';

describe('The process runtime', () => {
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

  test('neither adopts nor ends another process that has the same pid', async () => {
    const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { detached: true, stdio: 'ignore' });
    try {
      // Start times have a resolution of 10 ms.
      await new Promise((resolve) => setTimeout(resolve, 50));
      const applied = await runtime.apply(workload, signal());
      const before = await record();
      process.kill(before.pid, 'SIGKILL');
      await eventually('the written exit', async () => readFile(recordPath().replace(/json$/, 'exit'), 'utf8'));
      expect((await observed())[0]?.exit).toMatchObject({ code: 137, message: 'Terminated by SIGKILL' });
      await writeFile(recordPath(), JSON.stringify({ ...before, pid: other.pid }));
      const next = open();
      const [found] = await observed(next);
      expect(applied.ok && found?.phase).toBe('exited');
      expect(found?.exit?.code).toBeUndefined();
      if (found !== undefined) expect(await next.stop(found.id, { graceMs: 0 }, signal())).toMatchObject({ ok: true });
      expect(isThere(other.pid ?? 0)).toBe(true);
    } finally {
      other.kill('SIGKILL');
    }
  });

  test('workloads survive a killed controller, and the next one adopts them', async () => {
    const script = fileURLToPath(new URL('apply-and-wait.ts', import.meta.url));
    const controller = spawn(process.execPath, [script, stateDir, TINY_SERVER, JSON.stringify(workload)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const id = await new Promise<string>((resolve) => controller.stdout.once('data', (data: Buffer) => resolve(data.toString().trim())));
    await eventually('an answer', async () => (await fetch(`http://127.0.0.1:${workload.port.host}/`)).text());
    controller.kill('SIGKILL');
    await new Promise((resolve) => controller.once('exit', resolve));
    expect(await observed()).toMatchObject([{ id, phase: 'running' }]);
    expect(await (await fetch(`http://127.0.0.1:${workload.port.host}/`)).text()).toBe('hello');
    let wakes = 0;
    const watching = new AbortController();
    runtime.changes(() => (wakes += 1), watching.signal);
    await new Promise((resolve) => setTimeout(resolve, 200));
    process.kill((await record()).pid, 'SIGKILL');
    await eventually('a wake', async () => (wakes > 0 ? true : undefined));
    watching.abort();
    expect(await observed()).toMatchObject([{ id, phase: 'exited' }]);
  });

  test('ends a workload together with everything it started', async () => {
    const child =
      'require("node:child_process").spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], {stdio: "inherit"}).on("spawn", function () { console.log("child " + this.pid) })';
    const parent = createProcessRuntime({
      stateDir,
      env: process.env,
      resolveProgram: () => Promise.resolve(ok([process.execPath, '-e', `${child}; setInterval(() => {}, 1000)`, '--'])),
    });
    const applied = await parent.apply(workload, signal());
    if (!applied.ok) throw new Error(applied.failure.message);
    const pid = await eventually('the child', async () => {
      for await (const line of parent.logs(applied.value, { tail: 10, follow: false }, signal()))
        if (line.text.startsWith('child ')) return Number(line.text.slice(6));
      return undefined;
    });
    expect(isThere(pid)).toBe(true);
    await parent.stop(applied.value, { graceMs: 2000 }, signal());
    await eventually('its end', async () => (isThere(pid) ? undefined : true));
  });

  test('reports a missing program and starts nothing', async () => {
    const without = open(() => Promise.resolve(fail('stalled', 'StartFailed', 'Install "tiny-server"')));
    expect(await without.apply(workload, signal())).toEqual({
      ok: false,
      failure: { kind: 'stalled', reason: 'StartFailed', message: 'Install "tiny-server"' },
    });
    expect(await observed()).toEqual([]);
  });

  test('reports a program that cannot be executed as an exit with the shell’s code, with the reason in the log', async () => {
    const broken = open(() => Promise.resolve(ok(['/nowhere/tiny-server'])));
    const applied = await broken.apply(workload, signal());
    expect(applied).toMatchObject({ ok: true });
    expect(await eventually('the exit', async () => (await observed(broken)).find((each) => each.phase === 'exited'))).toMatchObject({
      exit: { code: 127 },
    });
    const lines: string[] = [];
    if (applied.ok) for await (const line of broken.logs(applied.value, { tail: 10, follow: false }, signal())) lines.push(line.text);
    expect(lines.join('\n')).toContain('/nowhere/tiny-server');
  });

  test('makes its files unreadable for other users, and leaves no temporary file', async () => {
    await runtime.apply(workload, signal());
    expect((await stat(recordPath())).mode & 0o777).toBe(0o600);
    expect((await stat(join(stateDir, 'logs', `${workload.name}.log`))).mode & 0o777).toBe(0o600);
    expect(await readdir(join(stateDir, 'run'))).toEqual([`${workload.name}.json`]);
  });

  test.each(['../escape', 'a/b', '', '.hidden', 'UPPER'])('refuses the name %j', async (name) => {
    expect(await runtime.apply({ ...workload, name }, signal())).toMatchObject({ ok: false, failure: { kind: 'stalled' } });
  });

  test('keeps its processes when the state directory is moved away, and records them in the next one', async () => {
    await runtime.apply(workload, signal());
    const { pid } = await record();
    // While it starts, Node creates the directory for compiled code, with those above it.
    await eventually('an answer', async () => (await fetch(`http://127.0.0.1:${workload.port.host}/`)).text());
    await rename(stateDir, `${stateDir}-moved`);
    expect(await observed()).toMatchObject([{ name: workload.name, phase: 'running' }]);
    const other = { ...workload, name: `${workload.name}-other`, port: { host: await freePort(), container: 1 } };
    expect(await runtime.apply(other, signal())).toMatchObject({ ok: false, failure: { message: expect.stringContaining(stateDir) } });
    expect(await runtime.apply(workload, signal())).toMatchObject({ ok: true });
    expect(await stat(stateDir).catch(() => 'missing')).toBe('missing');
    await mkdir(stateDir);
    expect(await observed()).toMatchObject([{ name: workload.name, phase: 'running' }]);
    expect(await record()).toMatchObject({ pid });
    expect(await observed(open())).toMatchObject([{ phase: 'running' }]);
    await rm(`${stateDir}-moved`, { recursive: true });
  });

  test('finds its processes again after the state directory was lost while no controller ran', async () => {
    const env = { SLOT: 'primary', EMPTY: '' };
    const applied = await runtime.apply({ ...workload, env }, signal());
    const before = await record();
    await eventually('an answer', async () => (await fetch(`http://127.0.0.1:${workload.port.host}/`)).text());
    const [seen] = await observed();
    await rm(stateDir, { recursive: true });
    await mkdir(stateDir);
    const next = open();
    expect(await observed(next)).toEqual([seen]);
    expect(await record()).toEqual(before);
    if (applied.ok) expect(await next.stop(applied.value, { graceMs: 2000 }, signal())).toMatchObject({ ok: true });
    await eventually('its end', async () => (isThere(before.pid) ? undefined : true));
    // Not those of another state directory.
    await runtime.apply(workload, signal());
    expect(await observed(createProcessRuntime({ stateDir: `${stateDir}-other`, resolveProgram: program, env: process.env }))).toEqual([]);
  });

  test.each<[string, Readonly<Record<string, string>>]>([
    ['of this service keeps compiled code in its state', {}],
    ['of a slot that names another place keeps it there', { NODE_COMPILE_CACHE: '/nowhere' }],
  ])('a program %s', async (_what, env) => {
    const place = env['NODE_COMPILE_CACHE'] ?? join(stateDir, 'compiled');
    await runtime.apply({ ...workload, env }, signal());
    const lines = await eventually('its environment', async () => (await fetch(`http://127.0.0.1:${workload.port.host}/env`)).text());
    expect(lines.split('\n').filter((line) => line.startsWith('NODE_COMPILE_CACHE='))).toEqual([`NODE_COMPILE_CACHE=${place}`]);
    // It is no part of what a slot asks for.
    expect((await record()).env).toEqual(env);
  });

  test('a program that the user installed gets no place for compiled code', async () => {
    const node = join(stateDir, 'node');
    await symlink(process.execPath, node);
    await open(() => Promise.resolve(ok([node, TINY_SERVER]))).apply(workload, signal());
    const lines = await eventually('its environment', async () => (await fetch(`http://127.0.0.1:${workload.port.host}/env`)).text());
    expect(lines).not.toContain('NODE_COMPILE_CACHE=');
  });

  test('leaves no file of a workload that was stopped', async () => {
    for (let times = 0; times < 5; times += 1) {
      const applied = await runtime.apply(workload, signal());
      if (applied.ok) await runtime.stop(applied.value, { graceMs: 1000 }, signal());
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await readdir(join(stateDir, 'run'))).toEqual([]);
    await writeFile(join(stateDir, 'run', 'old.exit'), '{}');
    await observed(open());
    expect(await readdir(join(stateDir, 'run'))).toEqual([]);
  });

  test('ignores damaged records', async () => {
    await runtime.apply(workload, signal());
    await writeFile(join(stateDir, 'run', 'broken.json'), '{"name": "broken"');
    await writeFile(join(stateDir, 'run', 'other.json'), await readFile(recordPath(), 'utf8'));
    expect(await observed()).toMatchObject([{ name: workload.name }]);
  });

  test('rotates a full log and continues', async () => {
    const talk =
      'const line = "x".repeat(1023); for (let i = 0; i < 9 * 1024; i += 1) console.log(line); console.log("last"); setInterval(() => console.log("tick"), 50)';
    const talker = createProcessRuntime({
      stateDir,
      env: process.env,
      resolveProgram: () => Promise.resolve(ok([process.execPath, '-e', talk, '--'])),
    });
    const watching = new AbortController();
    talker.changes(() => undefined, watching.signal);
    await talker.apply(workload, signal());
    const log = join(stateDir, 'logs', `${workload.name}.log`);
    await eventually('the old log', async () => ((await stat(`${log}.1`)).size > 8 * 1024 * 1024 ? true : undefined));
    await eventually('the new log', async () => ((await readFile(log, 'utf8')).startsWith('tick') ? true : undefined));
    watching.abort();
    const [found] = await observed(talker);
    const lines: string[] = [];
    if (found !== undefined)
      for await (const line of talker.logs(found.id, { tail: 10_000, follow: false }, signal())) lines.push(line.text);
    expect(lines).toContain('last');
    expect(lines.at(-1)).toBe('tick');
  });
});
