import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { cutToBytes } from '../../src/cli/verbs/model-fetch.ts';
import { encodeDemoModel } from '../../toolboxes/demo/demo-models.ts';
import { startFakeHub } from '../support/hub/fake-hub.ts';
import { bufferFile } from '../support/hub/virtual-file.ts';
import { svcctl } from './run-svcctl.ts';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'svcctl-fetch-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

describe('svcctl model fetch', () => {
  test('fetches a model of the catalogue into the store, and finds it there the next time', async () => {
    const file = path.join(dir, 'demo/demo-fox.gguf');
    expect(await svcctl(['model', 'fetch', 'demo-fox', '--store', dir])).toEqual({
      code: 0,
      out: `model/demo-fox fetched: "${file}", 308 KiB; its checksum matches the catalogue\n`,
      err: '',
    });
    const before = await stat(file);
    const { code, out } = await svcctl(['model', 'fetch', 'demo-fox'], { env: { SVC_MODELS_DIR: dir } });
    expect({ code, out: out.split(':')[0] }).toEqual({ code: 0, out: 'model/demo-fox present' });
    expect((await stat(file)).ino).toBe(before.ino);
  });

  test('exits with 1, names the missing file, and writes the reason to the termination log', async () => {
    const log = path.join(dir, 'termination-log');
    await writeFile(log, '');
    const { code, err } = await svcctl(['model', 'fetch', 'own/m.gguf', '--store', dir, '--termination-log', log]);
    expect(code).toBe(1);
    const message = `The file "${dir}/own/m.gguf" does not exist, and the catalogue cannot provide it; put it into the model store`;
    expect(err).toBe(`error: ${message}\n`);
    expect(await readFile(log, 'utf8')).toBe(`ModelMissing: ${message}`);
  });

  test('explains what is wrong with an existing file', async () => {
    await writeFile(path.join(dir, 'm.gguf'), '<html>');
    const { code, err } = await svcctl(['model', 'fetch', 'm.gguf', '--store', dir]);
    expect({ code, err: err.includes('damaged or not a GGUF file') }).toEqual({ code: 1, err: true });
  });

  test('names the user who needs write permission if the store is not writable', async () => {
    const store = path.join(dir, 'store');
    await mkdir(store);
    // a file where the directory of the model would be: no permission stops the user that tests may run as
    await writeFile(path.join(store, 'demo'), '');
    const blocked = await svcctl(['model', 'fetch', 'demo-fox', '--store', store]);
    expect(blocked).toMatchObject({ code: 1, err: expect.stringContaining(`cannot be written to "${store}/demo"`) });
    await chmod(store, 0o555);
    if (process.getuid?.() === 0) return;
    await rm(path.join(store, 'demo'));
    const { err } = await svcctl(['model', 'fetch', 'demo-fox', '--store', store]);
    expect(err).toContain(`writable for user ${process.getuid?.()}`);
  });

  test('fetches the files of the pin that it is given, whose licence was checked by whoever gives it', async () => {
    const content = Buffer.from(encodeDemoModel('demo-owl'));
    const file = bufferFile(content);
    const hub = await startFakeHub({
      repos: [
        {
          name: 'o/r',
          commit: 'a'.repeat(40),
          files: new Map([['m-Q8_0.gguf', file]]),
          license: 'llama3.2',
          token: 'hf_right',
          gated: 'auto',
        },
      ],
    });
    try {
      const pinned = {
        path: 'hf/o/r/m-Q8_0/m-Q8_0.gguf',
        sha256: file.sha256,
        sizeBytes: file.sizeBytes,
        from: { kind: 'hub', repo: 'o/r', commit: 'a'.repeat(40), path: 'm-Q8_0.gguf' },
      };
      const pin = JSON.stringify({ version: 1, id: 'hf:o/r', files: [pinned], license: 'llama3.2', isGated: false });
      const env = { SVC_MODELS_DIR: dir, HF_ENDPOINT: hub.url, HF_HOME: dir, SVC_MODEL_PIN: pin };
      const log = path.join(dir, 'termination-log');
      const refused = await svcctl(['model', 'fetch', 'hf:o/r', '--termination-log', log], { env: { ...env, HF_TOKEN: 'hf_wrong' } });
      expect(refused.code).toBe(1);
      expect(await readFile(log, 'utf8')).toMatch(
        /^ModelGated: The account of "HF_TOKEN" has no access to ".*\/o\/r" yet .*; open the page and accept its terms/,
      );
      expect(refused.out + refused.err).not.toContain('hf_wrong');
      expect(await svcctl(['model', 'fetch', 'hf:o/r'], { env: { ...env, HF_TOKEN: 'hf_right' } })).toMatchObject({ code: 0 });
      expect(Buffer.compare(await readFile(path.join(dir, pinned.path)), content)).toBe(0);
      // Nothing was asked about the repository.
      expect(hub.log.filter((request) => request.path.startsWith('/api/'))).toEqual([]);
      const unreadable = await svcctl(['model', 'fetch', 'hf:o/r'], { env: { ...env, SVC_MODEL_PIN: '{"version":2}' } });
      expect(unreadable).toMatchObject({ code: 1, err: expect.stringContaining('Invalid pin in the variable "SVC_MODEL_PIN"') });
    } finally {
      await hub.close();
    }
  });

  test('refuses an invalid model id before it reads anything', async () => {
    expect(await svcctl(['model', 'fetch', '../../etc/passwd', '--store', dir])).toMatchObject({ code: 64 });
  });

  test('several runs on one store at the same time all end with the complete model', async () => {
    const runs = await Promise.all(Array.from({ length: 4 }, () => svcctl(['model', 'fetch', 'demo-embed', '--store', dir])));
    for (const { code } of runs) expect(code).toBe(0);
    expect(await svcctl(['model', 'fetch', 'demo-embed', '--store', dir])).toMatchObject({
      code: 0,
      out: expect.stringContaining('present'),
    });
  });
});

test('cutToBytes() never cuts a character in two', () => {
  expect(cutToBytes('abc', 4)).toBe('abc');
  expect(cutToBytes('aé漢', 3)).toBe('aé');
  expect(cutToBytes('aé漢', 5)).toBe('aé');
  expect(cutToBytes('é', 1)).toBe('');
});
