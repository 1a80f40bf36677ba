import { expect, test } from '@jest/globals';
import { changesText, listChanges } from '../../../../src/api/manage/decide/unsafe-edits.ts';

const text = (before: unknown, after: unknown): string => changesText(listChanges(before, after));

test.each([
  ['a key that changes', { model: { default: 'a' } }, { model: { default: 'b' } }, 'changed model.default from "a" to "b"'],
  ['a key in camelCase', { lifecycle: { idleTimeout: '1m' } }, { lifecycle: {} }, 'removed lifecycle.idle_timeout, which was "1m"'],
  ['a new slot', undefined, { enabled: true, model: { default: 'a' } }, 'set enabled to true, set model.default to "a"'],
  ['a list', { model: { args: ['-c'] } }, { model: { args: ['-c', '-d'] } }, 'changed model.args from ["-c"] to ["-c","-d"]'],
  ['a table in place of a value', { model: 'a' }, { model: { default: 'a' } }, 'changed model from "a" to {"default":"a"}'],
  ['the same in another order', { a: 1, b: 2 }, { b: 2, a: 1 }, 'changed nothing'],
])('%s', (_, before, after, expected) => expect(text(before, after)).toBe(expected));

test('names variables of the environment, and never their values', () => {
  expect(text({ env: { TOKEN: 'old' } }, { env: { TOKEN: 'new', OTHER: 'x' } })).toBe(
    'changed env.TOKEN from "(hidden)" to "(hidden)", set env.OTHER to "(hidden)"',
  );
  const pod = (value: string) => ({ pod: { containers: [{ name: 'server', env: [{ name: 'TOKEN', value }] }] } });
  expect(JSON.stringify(listChanges(pod('old'), pod('new')))).not.toMatch(/old|new/);
});

test('is short, whatever the documents are', () => {
  const keys = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`k${index}`, 'x'.repeat(10_000)]));
  expect(text(undefined, keys)).toMatch(/and 980 more$/);
  expect(text(undefined, keys).length).toBeLessThan(4000);
});
