/** Sealed lines: only the key opens them, and nothing that was changed passes for whole. */
import { expect, test } from '@jest/globals';
import { createSeal, openSealed } from '../../src/files/sealed-lines.ts';

const TEXTS = ['first', 'second, with ü', 'third'];

function sealed(texts: readonly string[] = TEXTS) {
  const seal = createSeal({ id: 'a' });
  const lines = texts.map((text) => seal.seal(text));
  return { key: seal.key, parts: [seal.head, ...lines, seal.end('it was stopped')] };
}

test('are read with the key, and only the key is secret', () => {
  const { key, parts } = sealed();
  expect(key).toMatch(/^[\w-]{43}$/);
  expect(openSealed(parts.join(''), key)).toEqual({ lines: TEXTS, why: 'it was stopped', problem: undefined });
  expect(parts.join('')).not.toContain(key);
  for (const text of TEXTS) expect(parts.join('')).not.toContain(text);
});

test('without any record there is an end', () => {
  const { key, parts } = sealed([]);
  expect(openSealed(parts.join(''), key)).toMatchObject({ lines: [], problem: undefined });
});

/** Another character in the middle of a line. */
const altered = (line: string): string => {
  const middle = line.length >> 1;
  return `${line.slice(0, middle)}${line[middle] === 'A' ? 'B' : 'A'}${line.slice(middle + 1)}`;
};

test.each<[what: string, change: (parts: readonly string[]) => readonly string[], lines: number, problem: string]>([
  ['an altered record', ([head = '', a = '', b = '', ...rest]) => [head, a, altered(b), ...rest], 1, 'Its record 2 was altered'],
  ['records in another order', ([head = '', a = '', b = '', ...rest]) => [head, b, a, ...rest], 0, 'cannot be decrypted'],
  ['a record that is left out', ([head = '', a = '', _b, ...rest]) => [head, a, ...rest], 1, 'Its record 2 was'],
  ['a record that is repeated', ([head = '', a = '', ...rest]) => [head, a, a, ...rest], 1, 'Its record 2 was'],
  ['the last record left out', (parts) => [...parts.slice(0, -2), ...parts.slice(-1)], 2, 'Its record 3 was'],
  ['no end', (parts) => parts.slice(0, -1), 3, 'It has no end'],
  ['a cut within a record', (parts) => [`${parts.slice(0, -1).join('').slice(0, -10)}`], 2, 'Its record 3 was'],
  [
    'a record that claims to be the end',
    ([head = '', a = '', ...rest]) => [head, a.replace('line', 'end'), ...rest],
    0,
    'cannot be decrypted',
  ],
  ['something behind the end', (parts) => [...parts, 'line AAAA\n'], 3, 'Something was added'],
  ['an altered first line', ([head = '', ...rest]) => [head.replace('"a"', '"b"'), ...rest], 0, 'cannot be decrypted'],
  ['a newer format', ([head = '', ...rest]) => [head.replace('"format":1', '"format":2'), ...rest], 0, 'A newer version'],
  ['a first line that is no object', ([, ...rest]) => ['[]\n', ...rest], 0, 'It is no capture'],
  ['no first line', (parts) => parts.slice(1), 0, 'It is no capture'],
  ['nothing', () => [], 0, 'It is no capture'],
])('%s is noticed', (_what, change, count, problem) => {
  const { key, parts } = sealed();
  const opened = openSealed(change(parts).join(''), key);
  expect(opened.problem).toContain(problem);
  expect(opened.lines).toEqual(TEXTS.slice(0, count));
});

test('records of another file with the same content do not pass', () => {
  const [one, other] = [sealed(), sealed()];
  const mixed = [...one.parts.slice(0, 2), ...other.parts.slice(2)];
  expect(openSealed(mixed.join(''), one.key)).toMatchObject({ lines: ['first'], problem: expect.stringContaining('record 2') });
});

test('another key opens nothing', () => {
  expect(openSealed(sealed().parts.join(''), sealed().key)).toMatchObject({
    lines: [],
    problem: expect.stringContaining('another capture'),
  });
});
