/** Somebody sets the clock of the machine while the service runs: it works on, and so does everything that takes time. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { isAnswering, killServer, pause, servingProcess, startService, type Service } from '../support/service.ts';

const HOUR_MS = 3_600_000;
const slotOf = (model: string) => `backend = "cpu"\nlifecycle.idle_timeout = "30m"\n[model]\ndefault = "${model}"\n`;

describe('A service whose wall clock is set', () => {
  let service: Service;
  let directory: string;
  const wallFile = (): string => join(directory, 'ahead');
  const stepTo = async (aheadMs: number): Promise<void> => {
    await writeFile(wallFile(), String(aheadMs));
    // The service reads the file fifty times a second.
    await pause(200);
  };

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'svc-wall-clock-'));
    const preload = `--import=${resolve('test/support/stepped-wall-clock.mjs')}`;
    service = await startService({ runtime: 'process', environment: { NODE_OPTIONS: preload, TEST_WALL_CLOCK_FILE: wallFile() } });
    await service.save('primary', slotOf('demo-owl'));
    await service.until('primary', 'ready', isAnswering);
  }, 120_000);
  afterAll(async () => {
    await service.dispose();
    await rm(directory, { recursive: true });
  }, 60_000);

  test('set back by an hour: sees an edit, and heals a dead server', async () => {
    await stepTo(-HOUR_MS);
    await service.save('primary', slotOf('demo-fox'));
    await service.until('primary', 'on its new model', (seen) => isAnswering(seen) && seen?.status.model === 'demo-fox', 20_000);
    const pid = await servingProcess(service);
    await killServer(service, 20_000);
    expect(await servingProcess(service)).not.toBe(pid);
  }, 90_000);

  test('set forward by a day: unloads nothing for being idle, and fails nothing for taking long', async () => {
    const pid = await servingProcess(service);
    await stepTo(24 * HOUR_MS);
    await service.save('embed', slotOf('demo-embed'));
    await service.until('embed', 'ready', isAnswering, 20_000);
    expect(isAnswering(await service.slot('primary'))).toBe(true);
    expect(await servingProcess(service)).toBe(pid);
  }, 60_000);

  test('set back again: ends when it is told to', async () => {
    await stepTo(0);
    const ended = service.kill('SIGTERM').then(() => 'ended');
    const late = new Promise<string>((done) => void setTimeout(() => done('still running'), 20_000).unref());
    expect(await Promise.race([ended, late])).toBe('ended');
  }, 60_000);
});
