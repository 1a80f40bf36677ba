import { expect, test } from '@jest/globals';
import { CATALOGUE } from '../../src/models/catalogue.ts';
import { PROVIDER_OF_MODEL, providerOfModel } from '../../src/schema/model-providers.ts';

test('the provider of each model of the catalogue is known from its id', () => {
  expect(Object.fromEntries([...CATALOGUE.values()].map(({ id, provider }) => [id, provider]))).toEqual(PROVIDER_OF_MODEL);
});

test('a GGUF file is served by the provider for GGUF, and any other id says nothing', () => {
  expect(providerOfModel('qwen/Qwen3-4B-Q4_K_M.gguf')).toBe('gguf');
  for (const model of ['sdxl.safetensors', 'hf:owner/repo', 'gguf', '', 'constructor', '__proto__'])
    expect(providerOfModel(model)).toBeUndefined();
});
