/** Suites that render the chart: with `helm` on the PATH, or the program that SVC_TEST_HELM names. Without either they are skipped loudly, or fail where required. */
import { spawnSync } from 'node:child_process';
import { describeWith } from './describe-with.ts';

const found = process.env['SVC_TEST_HELM'] !== undefined || spawnSync('helm', ['version'], { stdio: 'ignore' }).status === 0;
const REASON = 'there is no "helm" on the PATH, and SVC_TEST_HELM names no program that renders charts';

export function describeWithHelm(name: string, suite: () => void): void {
  describeWith({ isThere: found, word: 'helm', what: 'has Helm', reason: REASON }, name, suite);
}
