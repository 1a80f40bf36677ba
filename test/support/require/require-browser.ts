/**
 * Suites that need Chromium: the program in SVC_TEST_BROWSER, or one on the PATH. Without it they are skipped loudly, or fail where it is required. Playwright's own
 * browsers are not downloaded.
 */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describeWith } from './describe-with.ts';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const REASON = 'SVC_TEST_BROWSER names no Chromium, and there is none on the PATH';

/** Path of the program; empty without one. */
export const BROWSER = findBrowser();

export function describeWithBrowser(name: string, suite: () => void): void {
  describeWith({ isThere: BROWSER !== '', word: 'browser', what: 'has a browser', reason: REASON }, name, suite);
}

function findBrowser(): string {
  const named = process.env['SVC_TEST_BROWSER'] ?? '';
  if (named !== '') return isExecutable(named) ? named : '';
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find(isExecutable) ?? '';
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
