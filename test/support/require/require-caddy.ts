/**
 * Suites that need Caddy: the programs in SVC_TEST_CADDY, separated by spaces, each of which is tested, or the one on the PATH. Without it they are skipped loudly, or
 * fail where it is required.
 */
import { spawnSync } from 'node:child_process';
import { describe, test } from '@jest/globals';
import { describeWith } from './describe-with.ts';

const NAMED = (process.env['SVC_TEST_CADDY'] ?? 'caddy').split(' ').filter((name) => name !== '');
const REASON = 'SVC_TEST_CADDY names no Caddy, and there is none on the PATH';

/** Programs with their versions. */
const FOUND = NAMED.flatMap((program) => {
  const { status, stdout } = spawnSync(program, ['version'], { encoding: 'utf8' });
  return status === 0 ? [{ program, version: /[0-9][0-9.]*/.exec(stdout)?.[0] ?? '' }] : [];
});

export function describeWithCaddy(name: string, suite: (caddy: { readonly program: string; readonly version: string }) => void): void {
  for (const caddy of FOUND) describe(`${name} (Caddy ${caddy.version})`, () => suite(caddy));
  if (FOUND.length > 0) return;
  describeWith({ isThere: false, word: 'caddy', what: 'has Caddy', reason: REASON }, name, () => {
    test('needs Caddy', () => undefined);
  });
}
