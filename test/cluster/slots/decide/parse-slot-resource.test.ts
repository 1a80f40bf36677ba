import { describe, expect, test } from '@jest/globals';
import { SlotName } from '../../../../src/schema/words/names.ts';
import type { KubeObject } from '../../../../src/cluster/client/ports.ts';
import { isDesiredChange, parseSlotResource, recordLastGood } from '../../../../src/cluster/slots/decide/parse-slot-resource.ts';

const METADATA = { name: 'primary', uid: 'u', generation: 3, resourceVersion: '10' };
const BEFORE: KubeObject = { metadata: METADATA, spec: {}, status: { state: 'starting' } };
const after = (metadata: Partial<KubeObject['metadata']>): KubeObject => ({
  ...BEFORE,
  metadata: { ...METADATA, resourceVersion: '11', ...metadata },
});

describe('isDesiredChange()', () => {
  test.each<[string, KubeObject | undefined, KubeObject, boolean]>([
    ['a new resource', undefined, BEFORE, true],
    ['its status was published', BEFORE, { ...after({}), status: { state: 'ready' } }, false],
    ['another label', BEFORE, after({ labels: { team: 'a' } }), false],
    ['an edited spec', BEFORE, after({ generation: 4 }), true],
    ['deleted and created again', BEFORE, after({ uid: 'v' }), true],
    ['being deleted', BEFORE, after({ deletionTimestamp: '2026-01-01T00:00:00Z' }), true],
    ['a server without generations', { metadata: { name: 'primary', uid: 'u' } }, { metadata: { name: 'primary', uid: 'u' } }, true],
  ])('%s', (_case, before, now, expected) => {
    expect(isDesiredChange(before, now)).toBe(expected);
  });
});

describe('recordLastGood()', () => {
  const recorded = (length: number) => {
    const name = SlotName.parse('primary');
    const spec = {
      model: { default: 'a.gguf' },
      env: Object.fromEntries(['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I'].map((key) => [key, 'x'.repeat(length)])),
    };
    const { lastGood } = parseSlotResource(name, { ...BEFORE, spec }, undefined);
    return lastGood === undefined ? 'invalid' : recordLastGood(lastGood);
  };

  test('leaves out a text that might not fit into the object a second time', () => {
    expect(recorded(29_000)).toMatchObject({ generation: 3, spec: { model: { default: 'a.gguf' } } });
    expect(recorded(30_000)).toBeUndefined();
  });
});
