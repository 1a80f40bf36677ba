import { describe, expect, test } from '@jest/globals';
import { classifyEdit, hashUnscaled, type SlotEdit } from '../../../../src/reconciler/decide/facts/slot-edit.ts';
import { parseSlot, type SlotSpec } from '../../../../src/schema/slot/slot-spec.ts';
import { PRIMARY } from '../plan-fixture.ts';

type Document = Readonly<Record<string, unknown>>;

function specOf(document: Document): SlotSpec {
  const parsed = parseSlot(PRIMARY, { model: { default: 'a.gguf' }, ...document });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.spec;
}

const CASES: readonly (readonly [string, readonly [number, Document] | undefined, readonly [number, Document], SlotEdit])[] = [
  ['a slot that was not there before', undefined, [1, {}], 'edited'],
  ['nothing', [1, {}], [1, {}], 'unchanged'],
  ['a text that means the same', [1, {}], [2, {}], 'edited'],
  ['more replicas', [1, { replicas: 1 }], [2, { replicas: 3 }], 'scaled'],
  ['fewer replicas', [1, { replicas: 3 }], [4, { replicas: 1 }], 'scaled'],
  ['no replicas any more', [1, { replicas: 3 }], [2, { replicas: 0 }], 'scaled'],
  ['replicas after there were none', [1, { replicas: 0 }], [2, { replicas: 1 }], 'scaled-up'],
  ['another slot of the same name', [1, { replicas: 1 }], [1, { replicas: 2 }], 'edited'],
  ['another model', [1, {}], [2, { model: { default: 'b.gguf' } }], 'edited'],
  ['replicas and another key of the cluster', [1, { replicas: 1 }], [2, { replicas: 2, nodeSelector: { gpu: 'a' } }], 'edited'],
  ['replicas and a limit', [1, { replicas: 1 }], [2, { replicas: 2, lifecycle: { startTimeout: '10m' } }], 'edited'],
  ['a restart by hand', [1, {}], [2, { restartedAt: '2026-01-01T00:00:00Z' }], 'edited'],
];

describe('classifyEdit()', () => {
  test.each(CASES)('%s', (_name, before, [generation, document], edit) => {
    const known = before === undefined ? undefined : { generation: before[0], spec: specOf(before[1]) };
    expect(classifyEdit(known, { generation, spec: specOf(document) })).toBe(edit);
  });
});

test('an object that was deleted and made again is another slot, whatever its spec and generation', () => {
  const [before, after] = ['a', 'b'].map((uid) => ({ uid, generation: 1, spec: specOf({}) }));
  if (before === undefined || after === undefined) throw new Error('There are two');
  expect(classifyEdit(before, after)).toBe('edited');
  expect(hashUnscaled(before.spec, before.uid)).not.toBe(hashUnscaled(after.spec, after.uid));
});

describe('hashUnscaled()', () => {
  test('is the same for any number of replicas and any order of keys, and differs with anything else', () => {
    const hash = hashUnscaled(specOf({ env: { A: '1', B: '2' } }));
    expect(hash).toMatch(/^[0-9a-f]{16}$/);
    expect(hashUnscaled(specOf({ env: { B: '2', A: '1' }, replicas: 7 }))).toBe(hash);
    const others = [{ env: { A: '1', B: '3' } }, { env: { A: '1', B: '2' }, lifecycle: { idleTimeout: '1m' } }, {}].map((document) =>
      hashUnscaled(specOf(document)),
    );
    expect(new Set([hash, ...others]).size).toBe(4);
  });
});
