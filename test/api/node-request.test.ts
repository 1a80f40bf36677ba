import { expect, test } from '@jest/globals';
import { Socket } from 'node:net';
import { NodeRequest } from '../../src/api/node-request.ts';

test('memory that a piece has to itself is freed, and no other', () => {
  const request = new NodeRequest(new Socket());
  const own = Buffer.from(new ArrayBuffer(100));
  const shared = Buffer.from(new ArrayBuffer(101), 0, 100);
  for (const piece of [own, own, shared]) request.free(piece);
  expect([own.length, shared.length]).toEqual([0, 100]);
});
