/** Suites that render the chart: with `helm` on the PATH, or the program that SVC_TEST_HELM names. Without either they are skipped loudly, or fail where required. */
import { spawnSync } from 'node:child_process';
import { describe, test } from '@jest/globals';

const found = process.env['SVC_TEST_HELM'] !== undefined || spawnSync('helm', ['version'], { stdio: 'ignore' }).status === 0;
const REASON = 'there is no "helm" on the PATH, and SVC_TEST_HELM names no program that renders charts';

export function describeWithHelm(name: string, suite: () => void): void {
  if (found) {
    describe(name, suite);
  } else if (process.env['SVC_TEST_REQUIRE']?.includes('helm') === true) {
    describe(name, () => {
      test('has Helm, which SVC_TEST_REQUIRE asks for', () => {
        throw new Error(REASON);
      });
    });
  } else {
    process.stderr.write(`SKIPPED "${name}": ${REASON}\n`);
    describe.skip(`${name} (skipped: ${REASON})`, suite);
  }
}
