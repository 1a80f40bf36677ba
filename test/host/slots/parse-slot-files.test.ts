import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import type { TextFile } from '../../../src/files/read-text-file.ts';
import { parseSlotText } from '../../../src/host/slots/decide/parse-slot-text.ts';
import { createSlotFileParser } from '../../../src/host/slots/toml-directory.ts';
import { createBreather } from '../../../src/platform/slices.ts';

test('many new texts are parsed in slices, between which other work is done', async () => {
  const clock = { now: 0 };
  const counts = { parses: 0, turns: 0, longest: 0, inSlice: 0 };
  const parse = createSlotFileParser('/slots', {
    parse(...args) {
      clock.now += 1;
      counts.parses += 1;
      counts.inSlice += 1;
      counts.longest = Math.max(counts.longest, counts.inSlice);
      return parseSlotText(...args);
    },
    breather: () =>
      createBreather({
        sliceMs: 5,
        now: () => clock.now,
        async turn() {
          counts.turns += 1;
          counts.inSlice = 0;
          await nextTurn();
        },
      }),
  });
  const file = (): TextFile => ({ kind: 'text', text: '[model]\ndefault = "a.gguf"\n' });
  const files = new Map(Array.from({ length: 100 }, (_, index) => [`s${index}.toml`, file()]));
  expect((await parse(files)).parsed.size).toBe(100);
  expect(counts).toMatchObject({ parses: 100, turns: 20, longest: 5 });
  await parse(new Map([...files, ['s7.toml', file()]]));
  expect(counts).toMatchObject({ parses: 101, turns: 20 });
});
