/** Suites that need Firefox: the program in SVC_TEST_FIREFOX. Without it they are skipped loudly, or fail where it is required. */
import { describeWith } from './describe-with.ts';

const REASON = 'SVC_TEST_FIREFOX names no Firefox';

/** Path of the program; empty without one. */
export const FIREFOX = process.env['SVC_TEST_FIREFOX'] ?? '';

export function describeWithFirefox(name: string, suite: () => void): void {
  describeWith({ isThere: FIREFOX !== '', word: 'firefox', what: 'has Firefox', reason: REASON }, name, suite);
}
