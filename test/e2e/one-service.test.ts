/** Only one service uses a state directory, and it leaves nothing running when its terminal is closed. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { freePort } from '../support/free-port.ts';
import { eventually } from '../support/eventually.ts';
import { condition, isAnswering, killServer, ownEnvironment, servingProcess, startService, type Service } from '../support/service.ts';

describe('A second service', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ runtime: 'process' });
    await service.save('primary', 'backend = "cpu"\n[model]\ndefault = "demo-owl"\n');
    await service.until('primary', 'ready', isAnswering);
  }, 120_000);
  afterAll(() => service.dispose(), 60_000);

  const processOf = async (): Promise<number> => {
    const pid = (await servingProcess(service)) ?? 0;
    expect(pid).toBeGreaterThan(1);
    return pid;
  };
  const readySince = async (): Promise<string | null | undefined> => {
    const { status, last_transition_at: since } = condition(await service.slot('primary'), 'Ready') ?? {};
    return status === 'True' ? since : undefined;
  };
  const isRunning = (pid: number): boolean => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  };
  const startSecond = async (environment: Readonly<Record<string, string>> = {}) => {
    const child = spawn(process.execPath, ['src/cli/svcctl.mjs', 'serve'], {
      env: { ...ownEnvironment(), ...service.environment, SVC_LISTEN: `127.0.0.1:${await freePort()}`, ...environment },
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: 30_000,
    });
    let errors = '';
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
    return { code, errors };
  };

  test('on the same state directory exits at once, says who holds it, and touches no slot', async () => {
    const before = await processOf();
    const { code, errors } = await startSecond();
    expect(code).toBe(1);
    expect(errors.trim().split('\n')).toHaveLength(1);
    expect(errors).toMatch(
      /process \d+ on ".+", since \d{4}-.+Z, already uses it: stop that service first, or set "SVC_STATE_DIR" to another/,
    );
    expect(errors).toContain(join(service.dir, 'state'));
    expect(await processOf()).toBe(before);
    expect(isAnswering(await service.slot('primary'))).toBe(true);
  }, 60_000);

  test('with the same slots and a state directory of its own exits as well', async () => {
    const { code, errors } = await startSecond({ SVC_STATE_DIR: join(service.dir, 'other-state') });
    expect(code).toBe(1);
    expect(errors).toContain('set "SVC_CONFIG_DIR" to another directory');
    expect(isAnswering(await service.slot('primary'))).toBe(true);
  }, 60_000);

  test('may start as soon as the first one was killed, and adopts its slots', async () => {
    const before = [await processOf(), await readySince()];
    await service.kill('SIGKILL');
    await service.start();
    await service.until('primary', 'ready', isAnswering);
    // To restart the service is no transition of the slot.
    expect([await processOf(), await readySince()]).toEqual(before);
    await killServer(service);
    expect(await readySince()).not.toBe(before[1]);
  }, 90_000);

  test('stops its slots when the terminal is closed, like after Ctrl-C', async () => {
    const pid = await processOf();
    await service.kill('SIGHUP');
    await eventually('its server has ended', () => !isRunning(pid));
    expect(service.output()).toContain('"Stopped"');
  }, 60_000);

  test.each([[[]], [['--checkout']]])(
    'stops its slots also if nothing can be written any more (%j)',
    async (args) => {
      const child = spawn(process.execPath, ['src/cli/svcctl.mjs', 'serve', ...args], {
        env: { ...ownEnvironment(), ...service.environment },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      await eventually('the slot is ready', async () => isAnswering(await service.slot('primary').catch(() => undefined)), 60_000);
      const pid = await processOf();
      const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
      child.stdout.destroy();
      child.stderr.destroy();
      child.kill('SIGHUP');
      expect(await ended).toBe(0);
      expect(isRunning(pid)).toBe(false);
    },
    120_000,
  );
});
