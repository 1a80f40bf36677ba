import { expect, test } from '@jest/globals';
import { newRequestId } from '../../../src/api/server/define-route.ts';

test('request ids are random and never repeat, however many are made', () => {
  const ids = Array.from({ length: 10_000 }, newRequestId);
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) expect(id).toMatch(/^req_[0-9a-f]{32}$/);
  // None of the characters is always the same.
  for (let at = 'req_'.length; at < 36; at += 1) expect(new Set(ids.map((id) => id[at])).size).toBe(16);
});
