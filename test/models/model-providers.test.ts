import { readFile } from 'node:fs/promises';
import { expect, test } from '@jest/globals';
import { DEMO_CATALOGUE } from '../../src/models/catalogue/catalogue.ts';
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

test('a GGUF file is served by the provider for GGUF, and any other id says nothing', () => {
  expect(providerOfModel('qwen/Qwen3-4B-Q4_K_M.gguf')).toBe('gguf');
  for (const model of ['sdxl.safetensors', 'hf:owner/repo', 'gguf', '', 'constructor', '__proto__'])
    expect(providerOfModel(model)).toBeUndefined();
});
