import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { checkSource, type SourceVerdict } from '../../scripts/check-catalogue.ts';
import type { Download } from '../../src/models/catalogue/catalogue.ts';
import { fileUrl, readHubAccess } from '../../src/models/hub/hub-access.ts';
import { startFakeHub, type FakeHub, type Fault } from '../support/hub/fake-hub.ts';
import { virtualFile } from '../support/hub/virtual-file.ts';

const file = virtualFile(300_000);
let hub: FakeHub;
beforeAll(async () => {
  hub = await startFakeHub({
    repos: [{ name: 'o/r', commit: 'c'.repeat(40), files: new Map([['m.gguf', file]]), token: 'hf_x', gated: 'auto' }],
  });
});
afterAll(async () => await hub.close());
beforeEach(() => {
  hub.fault = () => undefined;
  hub.log.length = 0;
});

async function check(more: Partial<Download> = {}, token = 'hf_x'): Promise<SourceVerdict> {
  const access = readHubAccess({ HF_ENDPOINT: hub.url, HF_HOME: '/nonexistent', ...(token === '' ? {} : { HF_TOKEN: token }) });
  const url = fileUrl(hub.url, 'o/r', 'main', 'm.gguf');
  const right: Download = { kind: 'url', url, sha256: file.sha256, sizeBytes: file.sizeBytes, repo: 'o/r' };
  return await checkSource({ ...right, ...more, url: more.url === undefined ? url : hub.url + more.url }, access, 1);
}

test.each<[string, Partial<Download>, string, SourceVerdict['kind'], string]>([
  ['right', {}, 'hf_x', 'right', ''],
  ['another file', { sha256: 'f'.repeat(64) }, 'hf_x', 'wrong', 'The server has another file'],
  ['of another size', { sizeBytes: 5 }, 'hf_x', 'wrong', 'The server has 300000 bytes'],
  ['gone', { url: '/o/r/resolve/main/none.gguf' }, 'hf_x', 'wrong', 'HTTP status 404'],
  ['behind terms, which says nothing of the entry', {}, '', 'unchecked', 'HTTP status 403'],
])('a source that is %s is told from others without a download', async (_name, more, token, kind, message) => {
  const found = await check(more, token);
  expect(found.kind).toBe(kind);
  if (found.kind !== 'right') expect(found.message).toContain(message);
  expect(hub.sentBytes()).toBeLessThan(1000);
});

test.each<[string, Fault]>([
  ['limits how often it may be asked', { status: 429, headers: { 'retry-after': '0' } }],
  ['fails', { status: 500 }],
  ['is overloaded', { status: 503 }],
])('a server that %s is asked again, and its entry counts as unchecked if that does not help', async (_, fault) => {
  let faults = 1;
  hub.fault = () => (faults-- > 0 ? fault : undefined);
  expect(await check()).toEqual({ kind: 'right' });
  hub.log.length = 0;
  hub.fault = () => ({ ...fault, headers: {} });
  expect(await check()).toMatchObject({ kind: 'unchecked' });
  expect(hub.log).toHaveLength(4);
});

test('a server that asks for an hour is not waited for', async () => {
  hub.fault = () => ({ status: 429, headers: { 'retry-after': '3600' } });
  expect(await check()).toMatchObject({ kind: 'unchecked', message: expect.stringContaining('3601 s') });
  expect(hub.log).toHaveLength(1);
});

test('a server that does not answer says nothing of the entry', async () => {
  const access = readHubAccess({ HF_ENDPOINT: hub.url, HF_HOME: '/nonexistent' });
  const from: Download = { kind: 'url', url: 'http://127.0.0.1:1/m.gguf', sha256: file.sha256, sizeBytes: 1 };
  expect(await checkSource(from, access, 1)).toMatchObject({ kind: 'unchecked', message: expect.stringContaining('does not answer') });
});

const run = (...ids: string[]) =>
  spawnSync(process.execPath, ['scripts/check-catalogue.ts', ...ids], {
    encoding: 'utf8',
    env: { ...process.env, HF_ENDPOINT: 'http://127.0.0.1:1', HF_HOME: '/nonexistent' },
  });

test('an id that the catalogue does not have is refused instead of checking nothing', () => {
  const { status, stderr } = run('bge-m3', 'bge-m33');
  expect({ status, stderr: stderr.includes('Correct the id "bge-m33": the catalogue does not have it') }).toEqual({
    status: 64,
    stderr: true,
  });
});

test('without the Hub, nothing is called out of date', () => {
  const { status, stdout } = run('bge-m3');
  expect(stdout).toMatch(/^UNCHECKED {2}bge-m3 {2}catalogue\/bge-m3\//);
  expect(status).toBe(2);
}, 60_000);
