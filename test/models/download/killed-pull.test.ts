/**
 * Kills a download with SIGKILL at random moments, again and again. `npm test` does so a few times; `npm run test:long -- pulls` 200 times with 500 MB.
 *   SVC_TEST_KILLS   how often
 *   SVC_TEST_BYTES   size of the file
 *   SVC_TEST_SEED    the moments can be repeated with it
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { parseJournal } from '../../../src/models/download/decide/part-journal.ts';
import { journalOf } from '../../../src/models/download/resume-part.ts';
import { hashFile } from '../../../src/models/download/verify-hash.ts';
import { createRandom } from '../../support/simulation/seeded-random.ts';
import { startFakeHub, type FakeHub } from '../../support/hub/fake-hub.ts';
import { virtualFile } from '../../support/hub/virtual-file.ts';

const KILLS = Number(process.env['SVC_TEST_KILLS'] ?? 5);
const file = virtualFile(Number(process.env['SVC_TEST_BYTES'] ?? 50_000_000));
const random = createRandom(Number(process.env['SVC_TEST_SEED'] ?? 1));
const CONNECTIONS = 4;
/** What an interruption may cost for each connection, by the server's log. */
const LOST_BYTES = 8 * 2 ** 20;
const CHILD = path.join(import.meta.dirname, '../../support/hub/pull-child.ts');

let directory = '';
let hub: FakeHub;
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'svc-killed-'));
  hub = await startFakeHub({ repos: [{ name: 'o/r', commit: 'c'.repeat(40), files: new Map([['m.gguf', file]]) }] });
});
afterEach(async () => {
  await hub.close();
  await rm(directory, { recursive: true, force: true });
});

/** What the part has, by its journal alone. */
async function recordedBytes(target: string): Promise<number> {
  const text = await readFile(journalOf(`${target}.part`), 'utf8').catch(() => '');
  return [...(parseJournal(text, file)?.values() ?? [])].reduce((sum, { bytes }) => sum + bytes, 0);
}

function startPull(target: string) {
  const url = `${hub.url}/o/r/resolve/main/m.gguf`;
  const args = [CHILD, url, file.sha256, String(file.sizeBytes), target, String(CONNECTIONS)];
  return spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
}

test(
  `a download that is killed ${KILLS} times loses little, and nobody ever sees a part of the file`,
  async () => {
    const target = path.join(directory, 'm.gguf');
    // Slow enough that the download is about half complete after all kills.
    const runMs = KILLS > 10 ? 1000 : 150;
    hub.bytesPerSecond = (0.5 * file.sizeBytes) / ((KILLS * runMs) / 1000) / CONNECTIONS;
    let worstBytes = 0;
    let kills = 0;
    for (; kills < KILLS; kills += 1) {
      const before = { sent: hub.sentBytes(), recorded: await recordedBytes(target) };
      const child = startPull(target);
      const exited = once(child, 'exit');
      await once(child.stdout, 'data');
      await sleep(random.next() * 2 * runMs);
      child.kill('SIGKILL');
      await exited;
      expect((await readdir(directory)).filter((name) => name === 'm.gguf')).toEqual([]);
      const lost = hub.sentBytes() - before.sent - ((await recordedBytes(target)) - before.recorded);
      worstBytes = Math.max(worstBytes, lost);
    }
    hub.bytesPerSecond = undefined;
    const last = startPull(target);
    expect(await once(last, 'exit')).toEqual([0, null]);
    expect((await hashFile(target, new AbortController().signal)).digest('hex')).toBe(file.sha256);
    expect(await readdir(directory)).toEqual(['m.gguf']);
    expect((await stat(target)).nlink).toBe(1);
    expect(worstBytes).toBeLessThanOrEqual(CONNECTIONS * LOST_BYTES);
    const all = hub.sentBytes();
    process.stdout.write(
      `${kills} kills, ${file.sizeBytes} bytes: fetched ${all - file.sizeBytes} again in all, at most ${worstBytes} after one kill\n`,
    );
  },
  60_000 + KILLS * 8000,
);
