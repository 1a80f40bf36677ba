import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { compareVersions } from '../../../../src/cluster/client/decide/object-fields.ts';
import { resourcePath, DEPLOYMENTS, DEVICE_CLASSES, PODS } from '../../../../src/cluster/client/decide/resource-path.ts';

const pathOf = (result: ReturnType<typeof resourcePath>): string => (result.ok ? result.value : result.failure.reason);

describe('resourcePath()', () => {
  test('composes paths for core and other groups, namespaced and cluster-wide, with subresource and query', () => {
    expect([
      pathOf(resourcePath({ type: PODS, namespace: 'n' })),
      pathOf(
        resourcePath({
          type: DEPLOYMENTS,
          namespace: 'n',
          name: 'a.b-c',
          subresource: 'status',
          query: { force: 'true', none: undefined },
        }),
      ),
      pathOf(resourcePath({ type: DEVICE_CLASSES, namespace: 'n', name: 'gpu.nvidia.com' })),
      pathOf(resourcePath({ type: PODS, namespace: 'n', query: { labelSelector: 'a=b,c in (d)&x=y' } })),
    ]).toEqual([
      '/api/v1/namespaces/n/pods',
      '/apis/apps/v1/namespaces/n/deployments/a.b-c/status?force=true',
      '/apis/resource.k8s.io/v1/deviceclasses/gpu.nvidia.com',
      '/api/v1/namespaces/n/pods?labelSelector=a%3Db%2Cc+in+%28d%29%26x%3Dy',
    ]);
  });

  test('never composes a path that leads to another object than the named one', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'B', '.', '/', '%', '2', 'f', '-', '?', '#', '\\', ' ', ':', '\n', 'ü') });
    fc.assert(
      fc.property(text, (name) => {
        const path = resourcePath({ type: PODS, namespace: 'n', name });
        if (!path.ok) return;
        expect(new URL(path.value, 'http://h').pathname).toBe(`/api/v1/namespaces/n/pods/${name}`);
      }),
    );
  });
});

test('compareVersions() compares numbers of any size, and returns undefined for anything else', () => {
  const digits = fc.bigInt({ min: 0n, max: 10n ** 25n });
  fc.assert(
    fc.property(digits, digits, (left, right) => {
      expect(Math.sign(compareVersions(String(left), String(right)) ?? 7)).toBe(left < right ? -1 : left > right ? 1 : 0);
    }),
  );
  for (const invalid of [undefined, '', 'abc', '-1', '1.5']) expect(compareVersions(invalid, '1')).toBeUndefined();
});
