import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { BodySpool } from '../../../src/gateway/body/body-spool.ts';
import { createBufferBudget } from '../../../src/gateway/traffic/traffic.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'svc-spool-'));
});
afterEach(async () => await rm(directory, { recursive: true }));

test('a body on disk is read as it was appended, up to its end, has no name there, and gives its space back', async () => {
  const budget = createBufferBudget(10);
  const failures: unknown[] = [];
  const spool = new BodySpool({ directory, budget, onWritten: () => undefined, onFailed: (error) => void failures.push(error) });
  expect([spool.append(Buffer.from('abc')), spool.append(Buffer.from('defgh')), spool.append(Buffer.from('xyz'))]).toEqual([
    true,
    true,
    false,
  ]);
  spool.end();
  const read = async (from: number): Promise<string | undefined> => (await spool.read(from, 100))?.toString();
  let text = '';
  for (let piece = await read(0); piece !== ''; piece = await read(text.length)) text += piece;
  expect(text).toBe('abcdefgh');
  expect(await readdir(directory)).toEqual([]);
  expect(budget.reservedBytes()).toBe(8);
  spool.close();
  expect([await read(0), budget.reservedBytes(), failures]).toEqual([undefined, 0, []]);
});

/** Larger than what a flow reads at once. */
const LARGE = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 251));

test('a body on disk flows to its end, also while it arrives, and waits for a sink that is full', async () => {
  const spool = new BodySpool({
    directory,
    budget: createBufferBudget(LARGE.length),
    onWritten: () => undefined,
    onFailed: () => undefined,
  });
  spool.append(LARGE.subarray(0, 200_000));
  const pieces: Buffer[] = [];
  const received = await new Promise<Buffer>((resolve, reject) => {
    const flow = spool.flowTo({
      write(bytes) {
        if (pieces.length === 0) {
          spool.append(LARGE.subarray(200_000));
          spool.end();
        }
        pieces.push(bytes);
        setImmediate(() => flow.resume());
        return false;
      },
      end: () => resolve(Buffer.concat(pieces)),
      fail: reject,
    });
  });
  expect(received.equals(LARGE)).toBe(true);
  spool.close();
});
