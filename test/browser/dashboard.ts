/** Builds the dashboard, and launches Chromium for it. */
import { spawnSync } from 'node:child_process';
import { chromium, type Browser } from 'playwright-core';
import { BROWSER } from '../support/browser-path.ts';

const FLAGS = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // A fake microphone, without a permission prompt.
  '--use-fake-device-for-media-stream',
  '--use-fake-ui-for-media-stream',
];

/** Builds the dashboard if its sources have changed. Throws if the build fails. */
export function buildDashboard(): void {
  const built = spawnSync(process.execPath, ['scripts/build-dashboard.mjs'], { encoding: 'utf8' });
  if (built.status !== 0) throw new Error(`The dashboard was not built:\n${built.stderr}`);
}

export const launch = (): Promise<Browser> => chromium.launch({ executablePath: BROWSER, args: FLAGS });
