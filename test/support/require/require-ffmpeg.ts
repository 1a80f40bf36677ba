/** Suites that need ffmpeg on the PATH. Without it they are skipped loudly, or fail where it is required. */
import { spawnSync } from 'node:child_process';
import { describeWith } from './describe-with.ts';

const REASON = 'there is no ffmpeg on the PATH';
const HAS_FFMPEG = spawnSync('ffmpeg', ['-version'], { stdio: 'ignore' }).status === 0;

export function describeWithFfmpeg(name: string, suite: () => void): void {
  describeWith({ isThere: HAS_FFMPEG, word: 'ffmpeg', what: 'has ffmpeg', reason: REASON }, name, suite);
}
