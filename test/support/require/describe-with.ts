/** What suites need that a machine may lack: without it they are skipped with a message, or fail where `SVC_TEST_REQUIRE` names it. */
import { describe, test } from '@jest/globals';

export interface Requirement {
  readonly isThere: boolean;
  /** As `SVC_TEST_REQUIRE` names it. */
  readonly word: string;
  /** Continues the name of the failing test: `has Firefox`. */
  readonly what: string;
  /** Why it is not there. */
  readonly reason: string;
}

export function describeWith({ isThere, word, what, reason }: Requirement, name: string, suite: () => void): void {
  if (isThere) {
    describe(name, suite);
  } else if (process.env['SVC_TEST_REQUIRE']?.includes(word) === true) {
    describe(name, () => {
      test(`${what}, which SVC_TEST_REQUIRE asks for`, () => {
        throw new Error(reason);
      });
    });
  } else {
    process.stderr.write(`SKIPPED "${name}": ${reason}\n`);
    describe.skip(`${name} (skipped: ${reason})`, suite);
  }
}
