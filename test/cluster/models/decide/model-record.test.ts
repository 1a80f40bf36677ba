import { expect, test } from '@jest/globals';
import { pinOfEntry } from '../../../../src/cluster/models/decide/model-record.ts';
import { DEMO_CATALOGUE } from '../../../../src/models/catalogue/catalogue.ts';
import { ModelId } from '../../../../src/schema/words/names.ts';

test('a model whose files are generated has no record to fetch it by, a model with addresses has one', () => {
  const id = ModelId.parse('demo-fox');
  const demo = DEMO_CATALOGUE.get(id);
  if (demo === undefined) throw new Error('No demo model');
  expect(pinOfEntry(id, demo)).toBeUndefined();
  const from = { kind: 'url', url: 'https://models.test/x.gguf', sha256: 'A'.repeat(64), sizeBytes: 7 } as const;
  expect(pinOfEntry(id, { ...demo, files: [{ path: 'x.gguf', from }] })).toMatchObject({
    id,
    files: [{ path: 'x.gguf', sha256: 'a'.repeat(64), sizeBytes: 7 }],
  });
});
