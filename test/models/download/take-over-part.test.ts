/** What writers that share a volume conclude from each other's parts. */
import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { journalOf } from '../../../src/models/download/resume-part.ts';
import { createPartFiles } from '../../../src/models/download/take-over-part.ts';

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
