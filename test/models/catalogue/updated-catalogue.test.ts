/** A newer catalogue in the state directory, which `svcctl catalogue update` puts there. */
import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createCatalogueSource, type CatalogueSource } from '../../../src/models/catalogue/catalogue-source.ts';
import { formatProblem } from '../../../src/schema/slot/spec-problem.ts';
import { svcctl } from '../../cli/run-svcctl.ts';

const own = generateKeyPairSync('ed25519');
const foreign = generateKeyPairSync('ed25519');
const keyOf = ({ publicKey }: { readonly publicKey: KeyObject }): string =>
  publicKey.export({ format: 'der', type: 'spki' }).toString('base64');
const KEY = keyOf(own);
const SHA = 'a'.repeat(64);

const entry = (id: string, sha256 = SHA) =>
  `[[models]]\nid = "${id}"\nkind = "chat"\n[[models.files]]\nrepo = "o/r"\nfile = "m.gguf"\nsize = 42\nsha256 = "${sha256}"\n`;
const catalogueOf = (published: string, ...entries: readonly string[]) => `published = "${published}"\n${entries.join('')}`;
const signed = (text: string, by: { readonly privateKey: KeyObject } = own): string =>
  `${text}# ed25519 ${sign(null, Buffer.from(text), by.privateKey).toString('base64')}\n`;

let root = '';
let state = '';
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'svc-updated-'));
  state = path.join(root, 'state');
  await mkdir(state);
});
afterEach(async () => await rm(root, { recursive: true, force: true }));

const open = async (key: string | undefined = KEY): Promise<CatalogueSource> => {
  const source = await createCatalogueSource({
    local: path.join(root, 'models.toml'),
    updated: { file: path.join(state, 'catalogue.toml'), key },
    hub: { endpoint: 'https://hub.test' },
    providers: ['gguf'],
    quietPeriodMs: 0,
    log: { info: () => undefined, warn: () => undefined },
  });
  await source.read();
  return source;
};
const store = async (text: string): Promise<void> => await writeFile(path.join(state, 'catalogue.toml'), text);

describe('a newer catalogue', () => {
  test('adds models and replaces those of the shipped one, without a restart, and others stay', async () => {
    const source = await open();
    expect([source.catalogue.has('next'), source.catalogue.get('bge-m3')?.kind]).toEqual([false, 'embed']);
    await store(signed(catalogueOf('2099-01-01', entry('next'), entry('bge-m3'))));
    expect(await source.read()).toEqual([]);
    expect(source.catalogue.get('next')).toMatchObject({ isOwn: false });
    expect(source.catalogue.get('bge-m3')?.kind).toBe('chat');
    expect(source.catalogue.has('qwen3-1.7b')).toBe(true);
    expect(source.published()).toBe('2099-01-01');
  });

  test('that is older than the shipped one only adds what that one lacks, as after an upgrade of the service', async () => {
    await store(signed(catalogueOf('2020-01-01', entry('next'), entry('bge-m3'))));
    const { catalogue, published } = await open();
    expect([catalogue.has('next'), catalogue.get('bge-m3')?.kind, published()]).toEqual([true, 'embed', '2026-11-26']);
  });

  test.each<[string, string, string | undefined, string]>([
    ['of another publisher', signed(catalogueOf('2099-01-01', entry('next')), foreign), KEY, 'Its signature is not of the key'],
    ['changed', signed(catalogueOf('2099-01-01', entry('next'))).replace('"next"', '"nice"'), KEY, 'Its signature is not of the key'],
    ['unsigned', catalogueOf('2099-01-01', entry('next')), KEY, 'It is not signed'],
    ['extended', `${signed(catalogueOf('2099-01-01'))}${entry('next')}`, KEY, 'It is not signed'],
    ['without a day', signed(entry('next')), KEY, 'It has no key "published"'],
    ['for a service without a key', signed(catalogueOf('2099-01-01', entry('next'))), '', 'No public key can verify it'],
    ['with a demo model', signed(catalogueOf('2099-01-01', entry('demo-fox'))), KEY, 'The shipped catalogue has the id "demo-fox"'],
  ])('%s is not used, and its mistake is reported', async (_name, text, key, message) => {
    await store(text);
    const source = await open(key);
    expect([source.catalogue.has('next'), source.catalogue.get('demo-fox')?.license]).toEqual([false, 'Apache-2.0']);
    expect((await source.read()).map((problem) => formatProblem(problem)).join()).toContain(message);
  });
});

describe('svcctl catalogue', () => {
  const env = (more: Readonly<Record<string, string>> = {}) => ({
    SVC_CONFIG_DIR: root,
    SVC_STATE_DIR: state,
    SVC_CATALOGUE_KEY: KEY,
    ...more,
  });
  const write = async (name: string, text: string): Promise<string> => {
    await writeFile(path.join(root, name), text);
    return path.join(root, name);
  };

  test('update stores it, doctor names it, and undo returns to the one before and to the shipped one', async () => {
    const first = await write('first.toml', signed(catalogueOf('2099-01-01', entry('next'))));
    const second = await write('second.toml', signed(catalogueOf('2099-02-01', entry('later'))));
    const update = (from: string) => svcctl(['catalogue', 'update', '--from', from], { env: env() });
    expect(await update(first)).toMatchObject({ code: 0, out: 'catalogue of 2099-01-01 in use: 1 models, new: next\n' });
    expect(await update(first)).toMatchObject({ code: 0, out: 'catalogue of 2099-01-01 already in use\n' });
    expect(await update(second)).toMatchObject({ code: 0, out: 'catalogue of 2099-02-01 in use: 1 models, new: later\n' });
    expect(await update(first)).toMatchObject({ code: 1, err: expect.stringContaining('is older than the one in use, of 2099-02-01') });
    expect((await svcctl(['doctor', '-o', 'wide'], { env: env() })).out).toContain('Catalogue of 2099-02-01');
    const undo = () => svcctl(['catalogue', 'undo'], { env: env() });
    expect(await undo()).toMatchObject({ code: 0, out: 'catalogue of 2099-01-01 in use\n' });
    expect(await undo()).toMatchObject({ code: 0, out: 'catalogue of 2026-11-26 in use\n' });
    expect(await undo()).toMatchObject({ code: 1, err: expect.stringContaining('nothing to undo') });
  });

  test('update takes an address, and a failure leaves everything as it was', async () => {
    let status = 200;
    const text = signed(catalogueOf('2099-01-01', entry('next')));
    const server = createServer((_request, response) => void response.writeHead(status).end(text));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/catalogue.toml`;
    try {
      expect(await svcctl(['catalogue', 'update'], { env: env({ SVC_CATALOGUE_URL: url }) })).toMatchObject({ code: 0 });
      status = 404;
      const failed = await svcctl(['catalogue', 'update'], { env: env({ SVC_CATALOGUE_URL: url }) });
      expect(failed).toMatchObject({ code: 1, err: expect.stringContaining('cannot be read: HTTP status 404') });
    } finally {
      server.closeAllConnections();
      server.close();
    }
    const forged = await write('forged.toml', signed(catalogueOf('2099-03-01', entry('next')), foreign));
    expect(await svcctl(['catalogue', 'update', '--from', forged], { env: env() })).toMatchObject({
      code: 1,
      err: expect.stringContaining('is refused: Its signature is not of the key in "SVC_CATALOGUE_KEY"'),
    });
    expect(await readFile(path.join(state, 'catalogue.toml'), 'utf8')).toBe(text);
    expect(await svcctl(['catalogue', 'update'], { env: env() })).toMatchObject({
      code: 64,
      err: expect.stringContaining('this version has no default'),
    });
  });
});
