/** Suites that need Chromium. Without it they are skipped loudly, or fail where it is required. */
import { BROWSER } from '../browser-path.ts';
import { describeWith } from './describe-with.ts';

const REASON = 'SVC_TEST_BROWSER names no Chromium, and there is none on the PATH';

export function describeWithBrowser(name: string, suite: () => void): void {
  describeWith({ isThere: BROWSER !== '', word: 'browser', what: 'has a browser', reason: REASON }, name, suite);
}
