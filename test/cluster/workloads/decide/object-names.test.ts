import { expect, test } from '@jest/globals';
import { parseKubeWorkload } from '../../../../src/cluster/workloads/decide/object-names.ts';
import { kubeWorkload } from '../workload-fixtures.ts';

test('only a workload with an image that was planned for a cluster can run there, and the others say why', () => {
  const workload = kubeWorkload();
  const { cluster: _planned, ...plain } = workload;
  expect(parseKubeWorkload(workload)).toEqual({ ok: true, value: workload });
  expect(parseKubeWorkload({ ...workload, image: undefined })).toMatchObject({ failure: { kind: 'stalled', reason: 'ImageUnknown' } });
  expect(parseKubeWorkload(plain)).toMatchObject({ failure: { kind: 'stalled', reason: 'InternalError' } });
});
