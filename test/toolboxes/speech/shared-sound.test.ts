import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createSharedSound, openSharedSound } from '../../../toolboxes/speech/shared-sound.ts';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'svc-shared-'));
});
afterAll(async () => rm(directory, { recursive: true }));

const samplesOf = (count: number, from: number): Float32Array => Float32Array.from({ length: count }, (_, index) => from + index);

test('what the server writes, the engine reads: pieces of any length, one after the other', async () => {
  const sound = createSharedSound(directory);
  const reader = openSharedSound(sound.fd);
  for (const [count, from] of [
    [5, 1],
    [100_000, 7],
    [3, 2],
    [0, 0],
    [100_001, 9],
  ] as const) {
    await sound.write(samplesOf(count, from));
    expect(Buffer.from(reader.read(count)).equals(Buffer.from(samplesOf(count, from)))).toBe(true);
  }
});

test('writes samples that are a part of a larger buffer', async () => {
  const sound = createSharedSound(directory);
  await sound.write(samplesOf(10, 0).subarray(3, 6));
  expect([...openSharedSound(sound.fd).read(3)]).toEqual([3, 4, 5]);
});

test('leaves no name behind that anybody could open', async () => {
  await createSharedSound(directory).write(samplesOf(10, 0));
  expect(await readdir(directory)).toEqual([]);
});

test('does not take fewer samples for all of them', async () => {
  const sound = createSharedSound(directory);
  await sound.write(samplesOf(10, 0));
  expect(() => openSharedSound(sound.fd).read(11)).toThrow('announced 11 samples');
});
