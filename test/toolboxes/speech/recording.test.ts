import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { keepRecording, recordingOf, SMALL_BYTES, type Recording } from '../../../toolboxes/speech/recording.ts';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'svc-recording-'));
});
afterAll(async () => rm(directory, { recursive: true }));

const MANY = 10 * SMALL_BYTES;
const budgets = (most: { readonly disk?: number; readonly memory?: number } = {}) => ({
  disk: { used: 0, most: most.disk ?? MANY },
  memory: { used: 0, most: most.memory ?? MANY },
});
const chunksOf = (sizes: readonly number[]): readonly Buffer[] => sizes.map((size, index) => Buffer.alloc(size, index + 1));
const keep = async (chunks: readonly Buffer[], shared: ReturnType<typeof budgets>, truncated = false): Promise<Recording> =>
  keepRecording(Object.assign(Readable.from(chunks, { objectMode: false }), { truncated }), { directory, limit: MANY, ...shared });

test('a small recording stays in memory, and never reaches the disk', async () => {
  const shared = budgets();
  const chunks = chunksOf([SMALL_BYTES - 1, 1]);
  const recording = await keep(chunks, shared);
  expect(recording.bytes?.equals(Buffer.concat(chunks))).toBe(true);
  expect(await readdir(directory)).toEqual([]);
  expect(shared).toMatchObject({ disk: { used: 0 }, memory: { used: SMALL_BYTES } });
  await recording.remove();
  expect(shared).toEqual(budgets());
});

test.each([
  ['one that is larger goes to disk', [SMALL_BYTES, 1], budgets()],
  ['one goes to disk if others fill the memory', [10, 10], budgets({ memory: 19 })],
  ['one goes to disk if a part of it is too large for the memory', [30], budgets({ memory: 19 })],
])('%s', async (_, sizes, shared) => {
  const chunks = chunksOf(sizes);
  const recording = await keep(chunks, shared);
  expect(recording.bytes).toBeUndefined();
  expect((await readFile(await recording.toFile())).equals(Buffer.concat(chunks))).toBe(true);
  expect(shared).toMatchObject({ disk: { used: recording.size }, memory: { used: 0 } });
  await recording.remove();
  expect(shared.disk.used).toBe(0);
  expect(await readdir(directory)).toEqual([]);
});

test('programs that need a file get one of a small recording, which is removed with it', async () => {
  const bytes = Buffer.from('RIFF');
  const recording = recordingOf(bytes, directory);
  expect(await readFile(await recording.toFile(), 'latin1')).toBe('RIFF');
  await recording.remove();
  expect(await readdir(directory)).toEqual([]);
});

test.each([
  ['too large for the disk', [SMALL_BYTES, 10], budgets({ disk: SMALL_BYTES }), false, 429],
  ['over the limit, in memory', [10], budgets(), true, 413],
  ['over the limit, on disk', [SMALL_BYTES, 10], budgets(), true, 413],
] as const)('a recording that is %s is refused and leaves nothing', async (_, sizes, shared, truncated, status) => {
  await expect(keep(chunksOf(sizes), shared, truncated)).rejects.toMatchObject({ refusal: { status } });
  expect(shared).toMatchObject({ disk: { used: 0 }, memory: { used: 0 } });
  expect(await readdir(directory)).toEqual([]);
});

test('is the same bytes wherever it is kept, however it arrives', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: SMALL_BYTES / 2 }), { minLength: 1, maxLength: 6 }),
      fc.integer({ min: 0, max: 2 * SMALL_BYTES }),
      async (sizes, memory) => {
        const shared = budgets({ memory });
        const chunks = chunksOf(sizes);
        const recording = await keep(chunks, shared);
        const bytes = recording.bytes ?? (await readFile(await recording.toFile()));
        expect(bytes.equals(Buffer.concat(chunks))).toBe(true);
        expect(recording.size).toBe(bytes.length);
        await recording.remove();
        expect([shared.disk.used, shared.memory.used, ...(await readdir(directory))]).toEqual([0, 0]);
      },
    ),
    { numRuns: 30 },
  );
});
