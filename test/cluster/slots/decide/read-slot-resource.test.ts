import { describe, expect, test } from '@jest/globals';
import type { KubeObject } from '../../../../src/cluster/client/ports.ts';
import { asksAnew } from '../../../../src/cluster/slots/decide/read-slot-resource.ts';

const METADATA = { name: 'primary', uid: 'u', generation: 3, resourceVersion: '10' };
const BEFORE: KubeObject = { metadata: METADATA, spec: {}, status: { state: 'starting' } };
const after = (metadata: Partial<KubeObject['metadata']>): KubeObject => ({
  ...BEFORE,
  metadata: { ...METADATA, resourceVersion: '11', ...metadata },
});

describe('asksAnew()', () => {
  test.each<[string, KubeObject | undefined, KubeObject, boolean]>([
    ['a new one', undefined, BEFORE, true],
    ['its status was written', BEFORE, { ...after({}), status: { state: 'ready' } }, false],
    ['somebody labelled it', BEFORE, after({ labels: { team: 'a' } }), false],
    ['its spec was edited', BEFORE, after({ generation: 4 }), true],
    ['it was removed and made anew', BEFORE, after({ uid: 'v' }), true],
    ['it shall go', BEFORE, after({ deletionTimestamp: '2026-01-01T00:00:00Z' }), true],
    ['a server that does not count', { metadata: { name: 'primary', uid: 'u' } }, { metadata: { name: 'primary', uid: 'u' } }, true],
  ])('%s', (_case, before, now, expected) => {
    expect(asksAnew(before, now)).toBe(expected);
  });
});
