import { readFile } from 'node:fs/promises';
import { expect, test } from '@jest/globals';
import { DEMO_CATALOGUE } from '../../src/models/catalogue/catalogue.ts';
import { chooseFiles } from '../../src/models/decide/choose-files.ts';
import { providerOf } from '../../src/models/catalogue/decide/catalogue-document.ts';
import { parseCatalogue } from '../../src/models/catalogue/decide/parse-catalogue.ts';
import { PROVIDER_OF_MODEL } from '../../src/schema/slot/catalogue-providers.ts';
import { providerOfModel } from '../../src/schema/slot/model-providers.ts';

test('the provider of each model of the catalogue is known from its id', async () => {
  const { records } = parseCatalogue(await readFile('src/models/catalogue/catalogue.toml', 'utf8'), 'catalogue.toml');
  const demo = [...DEMO_CATALOGUE.values()].map(({ id, provider }) => [id, provider]);
  const shipped = [...records.values()].map((record) => [record.id, providerOf(record)]);
  expect(PROVIDER_OF_MODEL).toEqual(Object.fromEntries([...demo, ...shipped]));
  expect(providerOfModel('kokoro-multi-lang-v1.0')).toBe('tts');
});

test('a GGUF file is served by the provider for GGUF, as is what a name of a repository on the Hub stands for', () => {
  for (const model of ['qwen/Qwen3-4B-Q4_K_M.gguf', 'hf:owner/repo/a.gguf', 'hf:owner/repo', 'hf:owner/repo:Q4_K_M'])
    expect(providerOfModel(model)).toBe('gguf');
  const onlyOthers = [{ path: 'model.safetensors', sizeBytes: 1, sha256: undefined }];
  expect(chooseFiles(onlyOthers, { repo: 'owner/repo' }, undefined)).toMatchObject({
    kind: 'none',
    message: expect.stringContaining('GGUF'),
  });
});

test('any other id says nothing', () => {
  for (const model of ['sdxl.safetensors', 'hf:owner/repo/model.safetensors', 'hf:owner', 'gguf', '', 'constructor', '__proto__'])
    expect(providerOfModel(model)).toBeUndefined();
});
