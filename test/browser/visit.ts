/** Opens the dashboard in a browser, and lets a test fail for the errors of its pages. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { AxeBuilder } from '@axe-core/playwright';
import { afterAll, afterEach, beforeAll, expect } from '@jest/globals';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { openPage } from '../support/open-page.ts';
import { buildDashboard, launch } from './dashboard.ts';

export interface VisitOptions {
  readonly theme?: 'light' | 'dark';
  readonly width?: number;
  readonly height?: number;
  /** The test lets requests fail, which Chromium logs. */
  readonly networkFails?: boolean;
  /** Called before the page is opened. */
  readonly prepare?: (page: Page) => Promise<unknown>;
}

/** Both themes in both sizes. */
export const LOOKS = [
  { theme: 'light', width: 1280, height: 900 },
  { theme: 'dark', width: 1280, height: 900 },
  { theme: 'light', width: 360, height: 740 },
  { theme: 'dark', width: 360, height: 740 },
] as const satisfies readonly VisitOptions[];

/**
 * Chromium logs each response with an error status, and each request that it ends because an interface of the machine came or went, such as
 * that of a container. The page handles both.
 */
const ANSWERED = /Failed to load resource: (?:the server responded with a status of 4\d\d|net::ERR_NETWORK_CHANGED)/;
const ANSWERED_OR_FAILED = /Failed to load resource: the server responded with a status of 4\d\d|ERR_/;

type Visit = (url: string, options?: VisitOptions) => Promise<Page>;

/**
 * Builds the dashboard and launches Chromium for a suite. After each test its pages are closed, and the test fails if
 * they had a console error, an exception, a policy violation or a request to another origin.
 */
export function setUpBrowser(): Visit {
  let browser: Browser | undefined;
  const visits: { readonly context: BrowserContext; readonly faults: readonly string[] }[] = [];
  beforeAll(async () => {
    buildDashboard();
    browser = await launch();
  }, 120_000);
  afterAll(async () => browser?.close());
  afterEach(async () => {
    const ended = visits.splice(0);
    await Promise.all(ended.map(({ context }) => context.close()));
    expect(ended.flatMap(({ faults }) => faults)).toEqual([]);
  });
  return async (url, { theme = 'light', width = 1280, height = 900, networkFails = false, prepare } = {}) => {
    if (browser === undefined) throw new Error('No browser: call visit() in a test');
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, reducedMotion: 'reduce' });
    const page = await context.newPage();
    const faults: string[] = [];
    visits.push({ context, faults });
    await watch({ context, page, faults, origin: new URL(url).origin, ignored: networkFails ? ANSWERED_OR_FAILED : ANSWERED });
    await prepare?.(page);
    await openPage(page, url);
    return page;
  };
}

/** Resolves with the findings of axe, one string each. "Legacy mode" needs no second page for each call, and differs for frames of other sites only. */
export async function accessibilityFaults(page: Page): Promise<readonly string[]> {
  const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
  const { violations } = await new AxeBuilder({ page }).setLegacyMode().withTags(tags).analyze();
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html}\n${failureSummary ?? ''}`));
}

interface Watched {
  readonly context: BrowserContext;
  readonly page: Page;
  readonly faults: string[];
  readonly origin: string;
  /** Console errors that are not faults. */
  readonly ignored: RegExp;
}

async function watch({ context, page, faults, origin, ignored }: Watched): Promise<void> {
  await context.exposeFunction('reportViolation', (text: string) => void faults.push(`policy: ${text}`));
  await context.addInitScript(
    `addEventListener('securitypolicyviolation', (event) => reportViolation(event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sourceFile + ':' + event.lineNumber));`,
  );
  page.on('console', (message) => {
    if (message.type() === 'error' && !ignored.test(message.text())) faults.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => void faults.push(`exception: ${error.message}`));
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (url.origin !== origin && url.protocol.startsWith('http')) faults.push(`request to another address: ${request.url()}`);
  });
}

/** Saves a screenshot in the directory `SVC_TEST_SCREENSHOTS`, if set. */
export async function picture(page: Page, name: string): Promise<void> {
  const directory = process.env['SVC_TEST_SCREENSHOTS'] ?? '';
  if (directory === '') return;
  mkdirSync(directory, { recursive: true });
  await page.screenshot({ path: join(directory, `${name}.png`) });
}
