import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { renameKey, toCamelCase, toSnakeCase } from '../../src/schema/key-case.ts';

const document = fc.dictionary(
  fc.oneof(
    fc.constantFrom('env', 'node_selector', 'nodeSelector', 'idle_timeout', 'idleTimeout', 'tolerations'),
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
