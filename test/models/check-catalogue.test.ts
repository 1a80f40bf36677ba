import { spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { checkSource, type Servers, type SourceVerdict } from '../../scripts/check-catalogue.ts';
import type { Download } from '../../src/models/catalogue/catalogue.ts';
import { fileUrl, readHubAccess, type HubAccess } from '../../src/models/hub/hub-access.ts';
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

const servers = (access: HubAccess): Servers => ({ hub: access, github: { api: hub.url }, pauseMs: 1 });

async function check(more: Partial<Download> = {}, token = 'hf_x'): Promise<SourceVerdict> {
  const access = readHubAccess({ HF_ENDPOINT: hub.url, HF_HOME: '/nonexistent', ...(token === '' ? {} : { HF_TOKEN: token }) });
  const url = fileUrl(hub.url, 'o/r', 'main', 'm.gguf');
  const right: Download = { kind: 'url', url, sha256: file.sha256, sizeBytes: file.sizeBytes, repo: 'o/r' };
  return await checkSource({ ...right, ...more, url: more.url === undefined ? url : hub.url + more.url }, servers(access));
}

test.each<[string, Partial<Download>, string, SourceVerdict['kind'], string]>([
  ['right', {}, 'hf_x', 'verified', ''],
  ['another file', { sha256: 'f'.repeat(64) }, 'hf_x', 'changed', 'The server has another file'],
  ['of another size', { sizeBytes: 5 }, 'hf_x', 'changed', 'The server has another file, with 300000 bytes'],
  ['gone', { url: '/o/r/resolve/main/none.gguf' }, 'hf_x', 'changed', 'HTTP status 404'],
  ['behind terms, which says nothing of the entry', {}, '', 'unchecked', 'HTTP status 403'],
])('a source that is %s is told from others without a download', async (_name, more, token, kind, message) => {
  const found = await check(more, token);
  expect(found.kind).toBe(kind);
  if (found.kind !== 'verified') expect(found.message).toContain(message);
  expect(hub.sentBytes()).toBeLessThan(1000);
});

test.each<[string, Fault]>([
  ['limits how often it may be asked', { status: 429, headers: { 'retry-after': '0' } }],
  ['fails', { status: 500 }],
  ['is overloaded', { status: 503 }],
])('a server that %s is asked again, and its entry counts as unchecked if that does not help', async (_, fault) => {
  let faults = 1;
  hub.fault = () => (faults-- > 0 ? fault : undefined);
  expect(await check()).toEqual({ kind: 'verified' });
  hub.log.length = 0;
  hub.fault = () => ({ ...fault, headers: {} });
  expect(await check()).toMatchObject({ kind: 'unchecked' });
  expect(hub.log).toHaveLength(4);
});

describe('assets of releases on GitHub', () => {
  const name = 'kokoro-multi-lang-v1_0.tar.bz2';
  const SHA = 'c5f7e2d2caf082bc1d20fb70334a61d99d20b484500aad32e7cf84c128ea3298';
  const url = `https://github.com/k2-fsa/sherpa-onnx/releases/download/tts-models/${name}`;
  const from: Download = {
    kind: 'url',
    url,
    sha256: SHA,
    sizeBytes: 349_906_910,
    others: [{ sha256: 'c'.repeat(64), sizeBytes: 349_418_188 }],
  };
  const access = readHubAccess({ HF_HOME: '/nonexistent' });

  /** The answers of GitHub's API: https://docs.github.com/en/rest/releases/assets */
  async function askWith(asset: object | undefined): Promise<SourceVerdict> {
    const others = Array.from({ length: 100 }, (_, index) => ({ name: `other-${index}`, size: 1, digest: null }));
    const api = createServer(({ url: path = '' }, response) => {
      const pages = [others, asset === undefined ? [] : [{ name, ...asset }]];
      const page = Number(/[?&]page=([0-9]+)/.exec(path)?.[1]);
      const known = path === '/repos/k2-fsa/sherpa-onnx/releases/tags/tts-models' ? { id: 7 } : undefined;
      const body = path.startsWith('/repos/k2-fsa/sherpa-onnx/releases/7/assets?') ? pages[page - 1] : known;
      response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(body ?? {}));
    });
    await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve));
    const address = api.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    try {
      return await checkSource(from, { hub: access, github: { api: `http://127.0.0.1:${port}` }, pauseMs: 1 });
    } finally {
      api.closeAllConnections();
      api.close();
    }
  }

  test.each<[string, object | undefined, SourceVerdict['kind'], string]>([
    ['the one of the catalogue', { size: 349_906_910, digest: `sha256:${SHA}` }, 'verified', ''],
    ['an earlier one that is accepted', { size: 349_418_188, digest: `sha256:${'c'.repeat(64)}` }, 'verified', ''],
    [
      'replaced',
      { size: 349_906_911, digest: `sha256:${'d'.repeat(64)}` },
      'changed',
      `349906911 bytes and the SHA-256 "${'d'.repeat(64)}"`,
    ],
    ['replaced by one of the same size', { size: 349_906_910, digest: `sha256:${'d'.repeat(64)}` }, 'changed', 'another file'],
    ['of the right size without a digest', { size: 349_906_910, digest: null }, 'unchecked', 'The size is right'],
    ['gone', undefined, 'changed', `has no file "${name}"`],
  ])('an asset that is %s', async (_name, asset, kind, message) => {
    const verdict = await askWith(asset);
    expect(verdict.kind).toBe(kind);
    if (verdict.kind !== 'verified') expect(verdict.message).toContain(message);
  });
});

test('a server that asks for an hour is not waited for', async () => {
  hub.fault = () => ({ status: 429, headers: { 'retry-after': '3600' } });
  expect(await check()).toMatchObject({ kind: 'unchecked', message: expect.stringContaining('3601 s') });
  expect(hub.log).toHaveLength(1);
});

test('a server that does not answer says nothing of the entry', async () => {
  const access = readHubAccess({ HF_ENDPOINT: hub.url, HF_HOME: '/nonexistent' });
  const from: Download = { kind: 'url', url: 'http://127.0.0.1:1/m.gguf', sha256: file.sha256, sizeBytes: 1 };
  expect(await checkSource(from, servers(access))).toMatchObject({
    kind: 'unchecked',
    message: expect.stringContaining('does not answer'),
  });
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
  expect(stdout).toMatch(
    /^unchecked {2}bge-m3\n {13}catalogue\/bge-m3\/.*: The server does not answer.*\n0 verified, 0 changed, 1 unchecked\n$/s,
  );
  expect(status).toBe(2);
}, 60_000);
