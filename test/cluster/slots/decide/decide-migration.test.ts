import { describe, expect, test } from '@jest/globals';
import { decideMigration, SETTLE_MS, type Migration } from '../../../../src/cluster/slots/decide/decide-migration.ts';
import { slotCrd } from '../../../../scripts/generate/publish-crd.ts';
import { tablesAt } from '../../../../src/schema/pod/kube-fields.ts';

const VERSIONS = ['v1alpha1', 'v1beta1', 'v1'];
const definition = (storage: string, storedVersions: unknown, generation = 2, uid = 'u') => ({
  metadata: { name: 'slotspecs.inference.svc.dev', uid, generation },
  spec: { versions: VERSIONS.map((name) => ({ name, served: true, storage: name === storage })) },
  status: { storedVersions },
});
const SEEN: Migration = { kind: 'wait', edition: 'u/2', storage: 'v1beta1', seenAt: 1000, written: new Set(['a']) };
const SETTLED = 1000 + SETTLE_MS;
const UPGRADED = definition('v1beta1', ['v1alpha1', 'v1beta1']);
const begun = (edition: string, storage = 'v1beta1', seenAt = SETTLED) => ({ kind: 'wait', edition, storage, seenAt, written: new Set() });

describe('decideMigration()', () => {
  test.each<
    readonly [what: string, definition: ReturnType<typeof definition>, before: Migration | undefined, now: number, decided: unknown]
  >([
    ['nothing to do: only the storage version is stored', definition('v1beta1', ['v1beta1']), undefined, SETTLED, undefined],
    ['… also after a migration', definition('v1beta1', ['v1beta1']), SEEN, SETTLED, undefined],
    ['an upgrade that the leader has not seen', UPGRADED, undefined, SETTLED, begun('u/2')],
    ['… of a definition with three versions', definition('v1', ['v1alpha1', 'v1beta1', 'v1']), undefined, 0, begun('u/2', 'v1', 0)],
    ['an upgrade of this moment: other API servers may not know it', UPGRADED, SEEN, 1000, SEEN],
    ['… and of a moment ago', UPGRADED, SEEN, SETTLED - 1, SEEN],
    ['an upgrade that every API server knows', UPGRADED, SEEN, SETTLED, { ...SEEN, kind: 'rewrite' }],
    [
      '… when a pass was interrupted: what is written stays so',
      UPGRADED,
      { ...SEEN, kind: 'rewrite' },
      SETTLED * 9,
      { ...SEEN, kind: 'rewrite' },
    ],
    ['an edit during the migration: everything again', definition('v1beta1', ['v1alpha1', 'v1beta1'], 3), SEEN, SETTLED, begun('u/3')],
    ['… that stores a third version', definition('v1', VERSIONS, 3), SEEN, SETTLED, begun('u/3', 'v1')],
    ['a definition deleted and created again', definition('v1beta1', ['v1alpha1', 'v1beta1'], 2, 'w'), SEEN, SETTLED, begun('w/2')],
    ['an older definition put back', definition('v1alpha1', ['v1beta1', 'v1alpha1'], 3), SEEN, SETTLED, undefined],
    ['… between two others', definition('v1beta1', ['v1alpha1', 'v1', 'v1beta1'], 3), SEEN, SETTLED, undefined],
    ['a definition that the API server has not accepted yet', definition('v1beta1', undefined), SEEN, SETTLED, undefined],
    ['… or has no stored version of', definition('v1beta1', []), SEEN, SETTLED, undefined],
  ])('%s', (_what, read, before, now, decided) => {
    expect(decideMigration(read, before, now)).toEqual(decided);
  });

  test('finds nothing in an object without versions', () => {
    expect(decideMigration({ metadata: { name: 'x' } }, SEEN, SETTLED)).toBeUndefined();
  });

  test('compares versions in the order of the definition, which lists the oldest one first', () => {
    expect(tablesAt(slotCrd(), 'spec', 'versions').map(({ name }) => name)).toEqual(['v1alpha1', 'v1beta1']);
  });
});
