/** Suites that need Firefox: the program in SVC_TEST_FIREFOX. Without it they are skipped loudly, or fail where it is required. */
import { describe, test } from '@jest/globals';

const REASON = 'SVC_TEST_FIREFOX names no Firefox';

/** Path of the program; empty without one. */
export const FIREFOX = process.env['SVC_TEST_FIREFOX'] ?? '';

export function describeWithFirefox(name: string, suite: () => void): void {
  if (FIREFOX !== '') {
    describe(name, suite);
  } else if (process.env['SVC_TEST_REQUIRE']?.includes('firefox') === true) {
    describe(name, () => {
      test('has Firefox, which SVC_TEST_REQUIRE asks for', () => {
        throw new Error(REASON);
      });
    });
  } else {
    process.stderr.write(`SKIPPED "${name}": ${REASON}\n`);
    describe.skip(`${name} (skipped: ${REASON})`, suite);
  }
}
