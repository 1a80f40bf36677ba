import { describe, expect, test } from '@jest/globals';
import type { KubeObject } from '../../../../src/cluster/client/ports.ts';
import { isDesiredChange } from '../../../../src/cluster/slots/decide/parse-slot-resource.ts';

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
