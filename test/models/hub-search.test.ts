/** Searches of a Hub on this machine, which answers as the real one does, and in ways that it should not. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readHubAccess } from '../../src/models/hub/hub-access.ts';
import { createHubSearch, type HubPage, type HubQuery, type SearchHub } from '../../src/models/hub/search-hub.ts';
import type { Result } from '../../src/schema/words/failure.ts';
import { startFakeHub, type FakeHub, type FakeRepo, type Fault } from '../support/hub/fake-hub.ts';
import { virtualFile } from '../support/hub/virtual-file.ts';

const FILES = new Map([
  ['README.md', virtualFile(100)],
  ['m-Q4_K_M.gguf', virtualFile(4000)],
  ['m-Q8_0.gguf', virtualFile(8000)],
]);
const repoOf = (name: string, more: Partial<FakeRepo> = {}): FakeRepo => ({
  name,
  commit: 'a'.repeat(40),
  files: FILES,
  license: 'apache-2.0',
  ...more,
});

let hub: FakeHub;
let clock = 0;
let search: SearchHub;
beforeEach(async () => {
  const repos = [
    repoOf('o/qwen-small', { downloads: 5, likes: 2, task: 'text-generation' }),
    repoOf('o/qwen-large', { downloads: 50, gated: 'manual' }),
    repoOf('o/llama', { downloads: 500 }),
    repoOf('o/qwen-weights', { downloads: 900, files: new Map([['model.safetensors', virtualFile(10)]]) }),
    repoOf('me/qwen-own', { private: true, token: 'hf_mine' }),
  ];
  hub = await startFakeHub({ repos });
  search = searchWith({});
});
afterEach(() => hub.close());

const searchWith = (env: Readonly<Record<string, string>>): SearchHub =>
  createHubSearch(readHubAccess({ HF_ENDPOINT: hub.url, HF_HOME: '/nonexistent', ...env }), () => clock);
const ask = async (text: string, more: Partial<HubQuery> = {}) => search({ text, limit: 10, cursor: undefined, ...more });
const isSearch = ({ path }: { readonly path: string }): boolean => path.startsWith('/api/models?');
const searches = (): number => hub.log.filter(isSearch).length;
const namesOf = (result: Result<HubPage>) => (result.ok ? result.value.found.map(({ repo }) => repo) : result.failure);
const breakSearch = (fault: Fault): void => void (hub.fault = (request) => (isSearch(request) ? fault : undefined));
const breakTree = (repo: string, fault: Fault): void =>
  void (hub.fault = ({ path }) => (path.startsWith(`/api/models/${repo}/tree`) ? fault : undefined));

describe('a search', () => {
  test('finds repositories with GGUF files, the most downloaded first, with their files', async () => {
    const result = await ask('Qwen');
    expect(namesOf(result)).toEqual(['o/qwen-large', 'o/qwen-small']);
    const [large, small] = result.ok ? result.value.found : [];
    expect(large).toMatchObject({ isGated: true, downloads: 50 });
    expect(small).toMatchObject({ task: 'text-generation', likes: 2, license: 'apache-2.0', url: `${hub.url}/o/qwen-small` });
    expect(small?.models.map(({ uri, sizeBytes }) => [uri, sizeBytes])).toEqual([
      ['hf:o/qwen-small:Q8_0', 8000],
      ['hf:o/qwen-small:Q4_K_M', 4000],
    ]);
  });

  test('sends its text as it is, and asks for the fields that it needs', async () => {
    await ask('a&filter=x #%');
    expect(hub.log[0]?.path).toContain('/api/models?search=a&filter=x+#%&filter=gguf&sort=downloads&direction=-1&limit=10&expand=cardData');
  });

  test('goes on with the cursor of the page before, to the end', async () => {
    const first = await ask('qwen', { limit: 1 });
    expect(namesOf(first)).toEqual(['o/qwen-large']);
    const cursor = first.ok ? first.value.next : undefined;
    const second = await ask('qwen', { limit: 1, cursor });
    expect(namesOf(second)).toEqual(['o/qwen-small']);
    expect(second).toMatchObject({ ok: true, value: { next: undefined } });
  });

  test('sends the token to the Hub, and shows no private repository', async () => {
    search = searchWith({ HF_TOKEN: 'hf_mine' });
    expect(namesOf(await ask('qwen'))).toEqual(['o/qwen-large', 'o/qwen-small']);
    expect(hub.log.every(({ authorization }) => authorization === 'Bearer hf_mine')).toBe(true);
  });

  test('asks the Hub once within five minutes, also for searches at the same time', async () => {
    expect(await ask('qwen')).toEqual((await Promise.all([ask('qwen'), ask('qwen')]))[0]);
    clock += 299_000;
    await ask('qwen');
    expect(searches()).toBe(1);
    clock += 2000;
    await ask('qwen');
    expect(searches()).toBe(2);
  });

  test('keeps 16 answers, and the newest of them', async () => {
    for (let index = 0; index <= 16; index += 1) await ask(`nothing ${index}`);
    await ask('nothing 16');
    expect(searches()).toBe(17);
    await ask('nothing 0');
    expect(searches()).toBe(18);
  });

  test('is refused while four others run', async () => {
    breakSearch({ hangs: true });
    const waiting = ['a', 'b', 'c', 'd'].map(async (text) => ask(text));
    expect(await ask('e')).toMatchObject({ ok: false, failure: { kind: 'retry', message: expect.stringContaining('Too many searches') } });
    await hub.close();
    expect(await Promise.all(waiting)).toHaveLength(4);
  });
});

describe('a Hub that answers otherwise', () => {
  test.each<[string, Fault, string, string]>([
    ['HTML', { status: 200, body: '<html>Sign in</html>' }, 'retry', 'not from the Hugging Face Hub; check "HF_ENDPOINT"'],
    ['an object', { status: 200, body: '{"models":[]}' }, 'retry', 'not from the Hugging Face Hub'],
    ['5 MB', { status: 200, body: Buffer.alloc(5_000_000, ' ') }, 'retry', 'larger than 4194304 bytes'],
    [
      'a redirect to another host',
      { status: 302, headers: { location: 'http://localhost:1/' } },
      'stalled',
      'redirects to "http://localhost:1"',
    ],
    ['endless redirects', { status: 302, headers: { location: '/api/models?x' } }, 'stalled', 'redirected too often'],
    ['429', { status: 429, headers: { 'retry-after': '54' } }, 'retry', 'try again in 55 s, or set "HF_TOKEN"'],
    ['401', { status: 401 }, 'stalled', 'requires a token for searches'],
    ['500', { status: 500 }, 'retry', 'failed with HTTP status 500; the server may respond later'],
    ['404', { status: 404 }, 'stalled', 'failed with HTTP status 404; check the address'],
  ])('with %s', async (_what, fault, kind, message) => {
    breakSearch(fault);
    expect(await ask('qwen')).toMatchObject({ ok: false, failure: { kind, message: expect.stringContaining(message) } });
    expect(hub.log.filter(({ server }) => server === 'storage')).toEqual([]);
  });

  test('with a refusal of the token', async () => {
    search = searchWith({ HF_TOKEN: 'hf_old' });
    breakSearch({ status: 401 });
    const message = expect.stringContaining('"HF_TOKEN" is not valid or may not search (HTTP status 401); correct "HF_TOKEN"');
    expect(await ask('qwen')).toMatchObject({ ok: false, failure: { kind: 'stalled', message } });
  });

  test('with nothing, or with a byte now and then, within ten seconds', async () => {
    hub.fault = ({ path }) => ({ hangs: path.includes('slow') ? 'drips' : true });
    const began = performance.now();
    for (const result of await Promise.all(['qwen', 'slow'].map(async (text) => ask(text))))
      expect(result).toMatchObject({ ok: false, failure: { kind: 'retry', message: expect.stringContaining('in time') } });
    expect(performance.now() - began).toBeLessThan(12_000);
  }, 20_000);

  test('is left in peace as long as it asks for, and a failure is kept for ten seconds', async () => {
    breakSearch({ status: 429, headers: { ratelimit: '"api";r=0;t=30' } });
    await ask('qwen');
    hub.fault = () => undefined;
    expect(await ask('llama')).toMatchObject({ ok: false });
    clock += 11_000;
    expect(await ask('qwen')).toMatchObject({ ok: false });
    expect(searches()).toBe(1);
    clock += 21_000;
    expect(namesOf(await ask('qwen'))).toEqual(['o/qwen-large', 'o/qwen-small']);
  });

  test('with a next page on another host or a strange cursor', async () => {
    const list = { status: 200, body: '[]' };
    for (const link of ['<http://localhost:1/api/models?cursor=a>; rel="next"', `<${hub.url}/api/models?cursor=a%0Ab>; rel="next"`, '<']) {
      clock += 600_000;
      breakSearch({ ...list, headers: { link } });
      expect(await ask('qwen')).toEqual({ ok: true, value: { found: [], next: undefined } });
    }
  });

  test.each<[string, Fault, string]>([
    ['fails', { status: 500 }, 'failed with HTTP status 500'],
    ['is 3 MB', { status: 200, body: Buffer.alloc(3_000_000, ' ') }, 'larger than 2097152 bytes'],
    ['is no list', { status: 200, body: 'null' }, 'not from the Hugging Face Hub'],
    ['is on another host', { status: 307, headers: { location: 'http://localhost:1/' } }, 'redirects to "http://localhost:1"'],
  ])('the others are listed if the list of files %s', async (_what, fault, problem) => {
    breakTree('o/qwen-large', fault);
    const result = await ask('qwen');
    const [large, small] = result.ok ? result.value.found : [];
    expect(large).toMatchObject({ models: [], draft: undefined, problem: expect.stringContaining(problem) });
    expect(small?.models).toHaveLength(2);
    clock += 11_000;
    hub.fault = () => undefined;
    const again = await ask('qwen');
    expect(again.ok ? again.value.found[0]?.models : []).toHaveLength(2);
  });

  test('a list of files with more pages says that it is not complete', async () => {
    breakTree('o/llama', {
      status: 200,
      body: '[]',
      headers: { link: `<${hub.url}/api/models/o/llama/tree/main?cursor=a>; rel="next"` },
    });
    const result = await ask('llama');
    expect(result.ok ? result.value.found[0]?.problem : '').toBe('Only the first 0 files were read');
  });
});
