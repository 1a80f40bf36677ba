import { Readable } from 'node:stream';
import { expect, test } from '@jest/globals';
import { bodyChunks } from '../../../src/models/download/transfer-body.ts';

const pieces = (count: number): readonly Buffer[] => Array.from({ length: count }, (_, index) => Buffer.alloc(1000, index));

/** A body that has received everything at once, and then ends, or fails. */
function bodyOf(chunks: readonly Buffer[], error?: Error): Readable {
  const body = new Readable({ read: () => undefined, highWaterMark: 1_000_000 });
  for (const chunk of chunks) body.push(chunk);
  if (error === undefined) body.push(null);
  else setImmediate(() => body.destroy(error));
  return body;
}

async function readSlowly(body: Readable): Promise<{ readonly received: Buffer; readonly failed?: unknown }> {
  const received: Buffer[] = [];
  try {
    for await (const chunk of bodyChunks(body)) {
      received.push(chunk);
      await new Promise((resolve) => setImmediate(resolve));
      await new Promise((resolve) => setImmediate(resolve));
    }
  } catch (error) {
    return { received: Buffer.concat(received), failed: error };
  }
  return { received: Buffer.concat(received) };
}

test.each([0, 1, 2, 3, 20])('%i chunks are passed on, to the end of the body', async (count) => {
  expect(await readSlowly(bodyOf(pieces(count)))).toEqual({ received: Buffer.concat(pieces(count)) });
});

test.each([0, 1, 2, 3, 20])('all of %i chunks that arrived before the connection broke are passed on before its error', async (count) => {
  const error = new Error('broken');
  expect(await readSlowly(bodyOf(pieces(count), error))).toEqual({ received: Buffer.concat(pieces(count)), failed: error });
});
