import { createHmac } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createSignatureCheck } from '../../src/wiring/open-source.ts';

let dir: string;
beforeAll(async () => void (dir = await mkdtemp(path.join(tmpdir(), 'svc-hook-'))));
afterAll(async () => await rm(dir, { recursive: true, force: true }));

const BODY = Buffer.from('{"ref":"refs/heads/main"}');
const sign = (secret: string, body = BODY): string => `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;

test('a webhook is signed with the secret in the file, which is read again each time', async () => {
  const file = path.join(dir, 'secret');
  await writeFile(file, 'the-first-secret-of-all\n');
  const check = createSignatureCheck(file, () => undefined);
  expect(await check(BODY, sign('the-first-secret-of-all'))).toBe(true);
  for (const wrong of [
    sign('another-secret-than-that'),
    sign('the-first-secret-of-all', Buffer.from('{}')),
    '',
    'sha256=',
    sign('').toUpperCase(),
  ])
    expect(await check(BODY, wrong)).toBe(false);
  await writeFile(file, 'the-second-secret-of-all');
  expect([await check(BODY, sign('the-first-secret-of-all')), await check(BODY, sign('the-second-secret-of-all'))]).toEqual([false, true]);
});

test('without a file, or with a short secret, no signature is valid', async () => {
  const problems: string[] = [];
  const file = path.join(dir, 'short');
  await writeFile(file, 'short\n');
  expect(await createSignatureCheck(undefined, () => undefined)(BODY, sign(''))).toBe(false);
  expect(await createSignatureCheck(file, (problem) => problems.push(problem))(BODY, sign('short'))).toBe(false);
  expect(await createSignatureCheck(path.join(dir, 'none'), (problem) => problems.push(problem))(BODY, sign(''))).toBe(false);
  expect(problems).toEqual([expect.stringContaining('it has fewer than 16 characters'), expect.stringContaining('ENOENT')]);
});
