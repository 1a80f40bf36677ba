import { expect, test } from '@jest/globals';
import { passResult } from '../../../../src/reconciler/decide/outcome/resume-times.ts';

const FINE = { readable: true, reachable: true, accepted: true };

test.each([
  [FINE, 'ok'],
  [{ ...FINE, readable: false }, 'unreadable'],
  [{ ...FINE, reachable: false }, 'unreachable'],
  [{ ...FINE, readable: false, reachable: false }, 'unreachable'],
  [{ readable: false, reachable: false, accepted: false }, 'refused'],
] as const)('a pass with %j ends as "%s"', (facts, result) => {
  expect(passResult(facts)).toBe(result);
});
