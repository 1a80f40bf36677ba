import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { checkSource } from '../../scripts/check-catalogue.ts';
import type { Download } from '../../src/models/catalogue.ts';
import { fileUrl, readHubAccess } from '../../src/models/hub/hub-access.ts';
import { startFakeHub, type FakeHub } from '../support/hub/fake-hub.ts';
import { virtualFile } from '../support/hub/virtual-file.ts';

const file = virtualFile(300_000);
let hub: FakeHub;
beforeAll(async () => {
  hub = await startFakeHub({
    repos: [{ name: 'o/r', commit: 'c'.repeat(40), files: new Map([['m.gguf', file]]), token: 'hf_x', gated: 'auto' }],
  });
});
afterAll(async () => await hub.close());

test.each<[string, Partial<Download>, string, string | undefined]>([
  ['right', {}, 'hf_x', undefined],
  ['another file', { sha256: 'f'.repeat(64) }, 'hf_x', 'The server has another file'],
  ['of another size', { sizeBytes: 5 }, 'hf_x', 'The server has 300000 bytes'],
  ['behind terms', {}, '', 'status 403'],
  ['gone', { url: '/o/r/resolve/main/none.gguf' }, 'hf_x', 'status 404'],
])('a source that is %s is told from others without a download', async (_name, more, token, problem) => {
  const access = readHubAccess({ HF_ENDPOINT: hub.url, HF_HOME: '/nonexistent', ...(token === '' ? {} : { HF_TOKEN: token }) });
  const right: Download = {
    kind: 'url',
    url: fileUrl(hub.url, 'o/r', 'main', 'm.gguf'),
    sha256: file.sha256,
    sizeBytes: file.sizeBytes,
    repo: 'o/r',
  };
  const download = { ...right, ...more, url: more.url === undefined ? right.url : hub.url + more.url };
  const found = await checkSource(download, access, new AbortController().signal);
  if (problem === undefined) expect(found).toBeUndefined();
  else expect(found).toContain(problem);
  expect(hub.sentBytes()).toBeLessThan(1000);
});
