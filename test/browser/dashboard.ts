/** Opens the dashboard in a browser, and records errors of the page and violations of its policy. */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { AxeBuilder } from '@axe-core/playwright';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { BROWSER } from '../support/browser-path.ts';

export type Theme = 'light' | 'dark';

export interface Visitor {
  readonly page: Page;
  /** Console errors, exceptions, requests to other origins and policy violations since the page was opened. */
  readonly faults: string[];
  /** Resolves with the findings of axe, one string each. */
  accessibilityFaults(): Promise<readonly string[]>;
  close(): Promise<void>;
}

export interface VisitorOptions {
  readonly theme?: Theme;
  readonly width?: number;
  readonly height?: number;
}

/** Both themes in both sizes. */
export const LOOKS = [
  { theme: 'light', width: 1280, height: 900 },
  { theme: 'dark', width: 1280, height: 900 },
  { theme: 'light', width: 360, height: 740 },
  { theme: 'dark', width: 360, height: 740 },
] as const satisfies readonly VisitorOptions[];

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
/** Chromium logs each response with an error status; the page handles them. */
const ANSWERED = /Failed to load resource: the server responded with a status of 4\d\d/;

/** Builds the dashboard if its sources have changed. Throws if the build fails. */
export function buildDashboard(): void {
  const built = spawnSync(process.execPath, ['scripts/build-dashboard.mjs'], { encoding: 'utf8' });
  if (built.status !== 0) throw new Error(`The dashboard was not built:\n${built.stderr}`);
}

export const launch = (): Promise<Browser> => chromium.launch({ executablePath: BROWSER, args: FLAGS });

export async function visit(
  browser: Browser,
  url: string,
  { theme = 'light', width = 1280, height = 900 }: VisitorOptions = {},
): Promise<Visitor> {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, reducedMotion: 'reduce' });
  const page = await context.newPage();
  const faults: string[] = [];
  await watch(context, page, faults, new URL(url).origin);
  await page.goto(url);
  return {
    page,
    faults,
    async accessibilityFaults() {
      const { violations } = await new AxeBuilder({ page })
        .withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'])
        .analyze();
      return violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html}\n${failureSummary ?? ''}`));
    },
    close: () => context.close(),
  };
}

async function watch(context: BrowserContext, page: Page, faults: string[], origin: string): Promise<void> {
  await context.exposeFunction('reportViolation', (text: string) => void faults.push(`policy: ${text}`));
  await context.addInitScript(
    `addEventListener('securitypolicyviolation', (event) => reportViolation(event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sourceFile + ':' + event.lineNumber));`,
  );
  page.on('console', (message) => {
    if (message.type() === 'error' && !ANSWERED.test(message.text())) faults.push(`console: ${message.text()}`);
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
