/** Size and contents of the built dashboard. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import { SECURITY_HEADERS } from '../../src/api/manage/dashboard-routes.ts';

const DIST = 'dashboard/dist';
const MAX_FIRST_BYTES = 120_000;
let page = '';

beforeAll(() => {
  const built = spawnSync(process.execPath, ['scripts/build-dashboard.mjs'], { encoding: 'utf8' });
  if (built.status !== 0) throw new Error(built.stderr);
  page = readFileSync(join(DIST, 'index.html'), 'utf8');
}, 120_000);

/** All scripts of the first load: those that the page names, and their static imports. */
function firstScripts(): ReadonlySet<string> {
  const found = new Set<string>();
  const add = (path: string): void => {
    if (found.has(path)) return;
    found.add(path);
    const text = readFileSync(join(DIST, path), 'utf8');
    for (const [, name = ''] of text.matchAll(/\b(?:from|import)\s*"\.\/([^"]+\.js)"/g)) add(`assets/${name}`);
  };
  for (const [, path = ''] of page.matchAll(/(?:src|href)="\/(assets\/[^"]+\.js)"/g)) add(path);
  return found;
}

test('the first load is at most 120 kB of compressed JavaScript, without the editor', () => {
  const scripts = [...firstScripts()];
  expect(scripts.length).toBeGreaterThan(0);
  const bytes = scripts.reduce((sum, path) => sum + statSync(join(DIST, `${path}.br`)).size, 0);
  expect(bytes).toBeLessThanOrEqual(MAX_FIRST_BYTES);
  expect(scripts.join()).not.toContain('toml-editor');
});

test('the first load contains neither the checklist, the sign-in form nor other pages', () => {
  const text = [...firstScripts()].map((path) => readFileSync(join(DIST, path), 'utf8')).join('\n');
  expect(text).toContain('/api/slots');
  for (const later of [
    '/api/install/state',
    '/api/profiles',
    'type:`password`',
    '/api/models',
    '/api/hardware',
    '/api/auth/tokens',
    '/v1/chat/completions',
  ]) {
    expect([later, text.includes(later)]).toEqual([later, false]);
  }
});

test('the page has no inline script, style or handler, and refers to no other host', () => {
  expect(page).not.toMatch(/<style|\son[a-z]+=|style=|<script(?![^>]*\ssrc=)/);
  for (const name of readdirSync(join(DIST, 'assets')).filter((file) => file.endsWith('.css'))) {
    expect(readFileSync(join(DIST, 'assets', name), 'utf8')).not.toMatch(/https?:|@import|url\(\/\//);
  }
  expect(page).not.toMatch(/https?:/);
});

test('the content security policy permits neither inline code nor other hosts', () => {
  const policy = SECURITY_HEADERS['content-security-policy'];
  expect(policy).not.toMatch(/unsafe|https?:|\*/);
  expect(policy).toContain("default-src 'none'");
});
