/** Suites that need ffmpeg on the PATH. Without it they are skipped loudly, or fail where it is required. */
import { spawnSync } from 'node:child_process';
import { describe, test } from '@jest/globals';

const REASON = 'there is no ffmpeg on the PATH';
const HAS_FFMPEG = spawnSync('ffmpeg', ['-version'], { stdio: 'ignore' }).status === 0;

export function describeWithFfmpeg(name: string, suite: () => void): void {
  if (HAS_FFMPEG) {
    describe(name, suite);
  } else if (process.env['SVC_TEST_REQUIRE']?.includes('ffmpeg') === true) {
    describe(name, () => {
      test('has ffmpeg, which SVC_TEST_REQUIRE asks for', () => {
        throw new Error(REASON);
      });
    });
  } else {
    process.stderr.write(`SKIPPED "${name}": ${REASON}\n`);
    describe.skip(`${name} (skipped: ${REASON})`, suite);
  }
}
