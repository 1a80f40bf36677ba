import { expect, test } from '@jest/globals';
import { readTranslatableBody } from '../../../src/gateway/translate/translated-answer.ts';

async function read(text: string) {
  const bytes = Buffer.from(text);
  return await readTranslatableBody({
    received: bytes.length,
    parts: undefined,
    read: async (from, most) => bytes.subarray(from, from + most),
  });
}

test.each([
  ['values', `{"a":[${'0,'.repeat(150_000)}0]}`],
  ['levels', `{"a":${'['.repeat(200)}${']'.repeat(200)}}`],
])('a body with too many %s is refused before it is parsed', async (what, text) => {
  expect(await read(text)).toMatchObject({ kind: 'refuse', code: 'request.invalid', message: expect.stringContaining(what) });
});

test('an ordinary body is parsed', async () => {
  expect(await read('{"a":[0]}')).toMatchObject({ kind: 'json', value: { a: [0] } });
});
