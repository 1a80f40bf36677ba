import { describe, expect, test } from '@jest/globals';
import { parsePodProxy, proxyEntries } from '../../../../src/cluster/workloads/decide/pod-proxy.ts';

const DIRECT = 'localhost,127.0.0.1,::1,.svc,.cluster.local';

describe('parsePodProxy()', () => {
  test.each([
    ['nothing', {}, undefined, {}],
    ['an empty variable', { HTTPS_PROXY: '' }, undefined, {}],
    ['only exceptions', { NO_PROXY: 'internal.example' }, undefined, {}],
    [
      'what the gateway has, with what pods reach directly',
      { HTTPS_PROXY: 'http://proxy.example:3128', NO_PROXY: 'internal.example, .svc', KUBERNETES_SERVICE_HOST: '10.0.0.1' },
      undefined,
      { HTTPS_PROXY: 'http://proxy.example:3128', NO_PROXY: `internal.example,.svc,localhost,127.0.0.1,::1,.cluster.local,10.0.0.1` },
    ],
    [
      'variables in lower case',
      { http_proxy: 'http://a.example', HTTP_PROXY: 'http://b.example' },
      undefined,
      { HTTP_PROXY: 'http://a.example', NO_PROXY: DIRECT },
    ],
    ['a Secret instead of values', { HTTPS_PROXY: 'http://proxy.example' }, 'proxy', { NO_PROXY: DIRECT }],
  ])('passes on %s', (_, env, secret, variables) => {
    expect(parsePodProxy(env, secret)).toEqual({ variables, problems: [] });
  });

  test.each(['http://user:s3cret@proxy.example:3128', 'user:s3cret@proxy.example:3128'])(
    'never passes on or quotes credentials: %s',
    (url) => {
      const found = parsePodProxy({ HTTPS_PROXY: url, HTTP_PROXY: 'http://open.example' }, undefined);
      expect(found.variables).toEqual({ HTTP_PROXY: 'http://open.example', NO_PROXY: DIRECT });
      expect(found.problems).toEqual([expect.stringMatching(/^The URL of "HTTPS_PROXY" contains credentials.*"SVC_POD_PROXY_SECRET"/)]);
      expect(JSON.stringify(found)).not.toContain('s3cret');
    },
  );
});

describe('proxyEntries()', () => {
  test('writes each variable in both cases, except those that the slot sets itself', () => {
    const variables = { HTTP_PROXY: 'http://a', HTTPS_PROXY: 'http://b$c' };
    expect(proxyEntries(variables, undefined, ['http_proxy'])).toEqual([
      { name: 'HTTPS_PROXY', value: 'http://b$$c' },
      { name: 'https_proxy', value: 'http://b$$c' },
    ]);
  });

  test('refers to a Secret without its content', () => {
    const valueFrom = (key: string) => ({ secretKeyRef: { name: 'proxy', key, optional: true } });
    expect(proxyEntries({ NO_PROXY: 'x' }, 'proxy', [])).toEqual([
      { name: 'HTTP_PROXY', valueFrom: valueFrom('HTTP_PROXY') },
      { name: 'http_proxy', valueFrom: valueFrom('HTTP_PROXY') },
      { name: 'HTTPS_PROXY', valueFrom: valueFrom('HTTPS_PROXY') },
      { name: 'https_proxy', valueFrom: valueFrom('HTTPS_PROXY') },
      { name: 'NO_PROXY', value: 'x' },
      { name: 'no_proxy', value: 'x' },
    ]);
    expect(proxyEntries({}, undefined, [])).toEqual([]);
  });
});
