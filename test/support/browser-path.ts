/** The Chromium of tests and measurements: the program in SVC_TEST_BROWSER, or one on the PATH. Playwright's own browsers are not downloaded. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** Path of the program; empty without one. */
export const BROWSER = findBrowser();

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
