/** Opens a page, also while the network changes. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Page } from 'playwright-core';

/**
 * Chromium gives up what it loads when a network interface of this machine comes or goes, which containers beside the
 * tests cause: it says so, goes to an error page of its own, or waits in vain.
 */
const CHANGED = /ERR_NETWORK_CHANGED|interrupted by another navigation to "chrome-error|Timeout \d+ms exceeded/;
const TRIES = 20;
const WITHIN_MS = 15_000;
const PAUSE_MS = 250;

export async function openPage(page: Page, url: string, tries = TRIES): Promise<void> {
  try {
    await page.goto(url, { timeout: WITHIN_MS });
  } catch (error) {
    // One that waited in vain has cost as much as many that were told.
    const left = tries - (String(error).includes('Timeout') ? 10 : 1);
    if (left <= 0 || !CHANGED.test(String(error))) throw error;
    await pause(PAUSE_MS);
    await openPage(page, url, left);
  }
}
