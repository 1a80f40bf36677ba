import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { pathToSnakeCase, renameKey, toCamelCase, toSnakeCase } from '../../../src/schema/words/key-case.ts';

const document = fc.dictionary(
  fc.oneof(
    fc.constantFrom(
      'env',
      'node_selector',
      'nodeSelector',
      'idle_timeout',
      'idleTimeout',
      'tolerations',
      'pod',
      'labels',
      'match_labels',
      'matchLabels',
    ),
    fc.string({ maxLength: 8 }),
  ),
  fc.jsonValue({ maxDepth: 4 }),
  { noNullPrototype: true },
);

describe('toCamelCase() and toSnakeCase()', () => {
  test('rename the keys of a slot, but not those that users choose', () => {
    const snake = {
      lifecycle: { idle_timeout: '15m' },
      env: { HSA_OVERRIDE_GFX_VERSION: '11.0.0', some_key: 'x' },
      node_selector: { 'kubernetes.io/arch': 'amd64', my_label: 'y' },
      tolerations: [{ toleration_seconds: 5 }],
      service_account_name: 'svc',
    };
    const camel = {
      lifecycle: { idleTimeout: '15m' },
      env: { HSA_OVERRIDE_GFX_VERSION: '11.0.0', some_key: 'x' },
      nodeSelector: { 'kubernetes.io/arch': 'amd64', my_label: 'y' },
      tolerations: [{ tolerationSeconds: 5 }],
      serviceAccountName: 'svc',
    };
    expect(toCamelCase(snake)).toEqual(camel);
    expect(toSnakeCase(camel)).toEqual(snake);
  });

  test('rename the keys of pods, but not labels, annotations and names of resources', () => {
    const snake = {
      pod: {
        labels: { my_label: 'a', 'example.com/someLabel': 'b' },
        affinity: { pod_affinity: { required_during_scheduling: [{ label_selector: { match_labels: { some_label: 'x' } } }] } },
        volumes: [{ csi: { volume_attributes: { secretProviderClass: 'x', some_key: 'y' } } }],
        server: { env: [{ value_from: { secret_key_ref: { key: 'a_b' } } }], resources: { limits: { 'x.dev/big_nic': 1, aB: 2 } } },
      },
      labels: { some_key: 1 },
    };
    const camel = {
      pod: {
        labels: { my_label: 'a', 'example.com/someLabel': 'b' },
        affinity: { podAffinity: { requiredDuringScheduling: [{ labelSelector: { matchLabels: { some_label: 'x' } } }] } },
        volumes: [{ csi: { volumeAttributes: { secretProviderClass: 'x', some_key: 'y' } } }],
        server: { env: [{ valueFrom: { secretKeyRef: { key: 'a_b' } } }], resources: { limits: { 'x.dev/big_nic': 1, aB: 2 } } },
      },
      labels: { someKey: 1 },
    };
    expect(toCamelCase(snake)).toEqual(camel);
    expect(toSnakeCase(camel)).toEqual(snake);
    expect(pathToSnakeCase(['pod', 'volumes', 0, 'csi', 'volumeAttributes', 'someKey'])).toEqual([
      'pod',
      'volumes',
      0,
      'csi',
      'volume_attributes',
      'someKey',
    ]);
  });

  test('convert any document without loss, in either order', () => {
    fc.assert(
      fc.property(document, (value) => {
        expect(toSnakeCase(toCamelCase(value))).toEqual(value);
        expect(toCamelCase(toSnakeCase(value))).toEqual(value);
      }),
      { numRuns: 2000 },
    );
  });

  test('do not correct a key in the wrong case', () => {
    expect(toCamelCase({ lifecycle: { idleTimeout: '1m' } })).toEqual({ lifecycle: { idle_timeout: '1m' } });
  });

  test('renameKey() is its own inverse', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('_', 'a', 'B', '1', '-') }), (key) => {
        expect(renameKey(renameKey(key))).toBe(key);
      }),
    );
  });
});
