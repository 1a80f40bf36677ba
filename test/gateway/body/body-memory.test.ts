import { expect, test } from '@jest/globals';
import { ReadMemory } from '../../../src/gateway/body/body-memory.ts';

const LARGE = 16 * 1024;

function memoryOf(): { readonly memory: ReadMemory; readonly freed: Buffer[] } {
  const freed: Buffer[] = [];
  return { memory: new ReadMemory({ free: (bytes) => void freed.push(bytes) }), freed };
}

test('what was noted is freed once', () => {
  const { memory, freed } = memoryOf();
  const pieces = [Buffer.alloc(LARGE), Buffer.alloc(LARGE)];
  for (const piece of pieces) memory.add(piece);
  memory.free();
  memory.free();
  expect(freed).toEqual(pieces);
});

test('short pieces are left to the collection of garbage', () => {
  const { memory, freed } = memoryOf();
  memory.add(Buffer.alloc(LARGE - 1));
  memory.free();
  expect(freed).toEqual([]);
});

test('what was left is never freed, and what is noted later is', () => {
  const { memory, freed } = memoryOf();
  const later = Buffer.alloc(LARGE, 1);
  memory.add(Buffer.alloc(LARGE));
  memory.leave();
  memory.add(later);
  memory.free();
  expect(freed).toEqual([later]);
});

test('a reader that frees nothing is asked for nothing', () => {
  const memory = new ReadMemory({});
  memory.add(Buffer.alloc(LARGE));
  expect(() => memory.free()).not.toThrow();
});
