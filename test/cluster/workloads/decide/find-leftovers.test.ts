import { describe, expect, test } from '@jest/globals';
import type { KubeObject, ObjectMeta } from '../../../../src/cluster/client/ports.ts';
import { findLeftovers } from '../../../../src/cluster/workloads/decide/select-pods.ts';
import { OWNER } from '../workload-fixtures.ts';

const object = (name: string, slot: string | undefined, changes: Partial<ObjectMeta> = {}): KubeObject => ({
  metadata: { name, ...(slot === undefined ? {} : { labels: { 'inference.svc.dev/slot': slot } }), ...changes },
});
const service = (changes: Partial<ObjectMeta> = {}) => object('svc-slot-old', 'old', changes);

describe('findLeftovers()', () => {
  test.each<
    [
      string,
      KubeObject,
      { readonly slots?: readonly string[]; readonly deployments?: readonly KubeObject[]; readonly pods?: readonly KubeObject[] },
      boolean,
    ]
  >([
    ['a Service of a slot that was deleted alone', service(), {}, true],
    ['a ConfigMap of a revision', object('svc-slot-old-0123456789ab', 'old'), {}, true],
    ['the same while other slots run', service(), { slots: ['new'], deployments: [object('svc-slot-new', 'new')] }, true],
    ['one with an owner, which Kubernetes deletes', service({ ownerReferences: [OWNER] }), {}, false],
    ['one that is being deleted', service({ deletionTimestamp: '2026-01-01T00:00:00Z' }), {}, false],
    ['one whose slot was declared again', service(), { slots: ['old'] }, false],
    ['one whose server is not stopped yet', service(), { deployments: [object('svc-slot-old', 'old')] }, false],
    ['one whose pods finish their requests', service(), { pods: [object('svc-slot-old-x-y', 'old')] }, false],
    ['one of somebody else with our labels', object('theirs', 'old'), {}, false],
    ['one of another slot whose name begins the same', object('svc-slot-older', 'old'), {}, false],
    ['one without a label', object('svc-slot-old', undefined), {}, false],
    ['one with a label that is no name of a slot', object('svc-slot-', ''), {}, false],
  ])('%s', (_, candidate, { slots = [], deployments = [], pods = [] }, expected) => {
    const found = findLeftovers([candidate], { slots: new Set(slots), deployments, pods });
    expect(found).toEqual(expected ? [candidate] : []);
  });
});
