/** What writers that share a volume conclude from each other's parts. */
import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { journalOf } from '../../../src/models/download/resume-part.ts';
import { createPartFiles, type PartFiles } from '../../../src/models/download/take-over-part.ts';

let directory = '';
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'svc-parts-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

test('a writer that has just taken over a part is not taken for one that has given up', async () => {
  const target = path.join(directory, 'w.bin');
  const left = `${target}.gone.part`;
  await writeFile(left, 'x'.repeat(1000));
  await writeFile(journalOf(left), '');
  const old = new Date(Date.now() - 600_000);
  await utimes(left, old, old);
  const [first, second] = ['a', 'b'].map((writer) => createPartFiles({ target, writer }));
  // Each sees the empty part of the other one.
  await first?.ahead();
  await second?.ahead();
  await first?.takeOver();
  expect(await second?.ahead()).toMatchObject({ name: 'w.bin.a.part', bytes: 1000 });
});

test('a writer that begins waits for one that has begun and has no byte yet, whatever their names', async () => {
  const target = path.join(directory, 'w.bin');
  const [a, b] = [createPartFiles({ target, writer: 'a' }), createPartFiles({ target, writer: 'b' })];
  expect(await b.ahead()).toBeUndefined();
  expect(await a.ahead()).toMatchObject({ name: 'w.bin.b.part', bytes: 0 });
  await b.release();
  expect(await a.ahead()).toBeUndefined();
});

test('of writers that begin at about the same time, one downloads', async () => {
  for (let round = 0; round < 100; round += 1) {
    const target = path.join(directory, String(round), 'w.bin');
    const writers = ['a', 'b', 'c'].map((writer) => createPartFiles({ target, writer }));
    const began: PartFiles[] = [];
    const wait = async (parts: PartFiles, afterMs: number): Promise<void> => {
      await pause(afterMs);
      for (; began.length === 0; await pause(1)) if ((await parts.ahead()) === undefined) return void began.push(parts);
    };
    await Promise.all(writers.map(async (parts, index) => await wait(parts, (round * (index + 1)) % 4)));
    expect(began).toHaveLength(1);
  }
});
