import { describe, expect, test } from '@jest/globals';
import { describeExposure, describeListening } from '../../../../src/api/server/decide/host-names.ts';

const INTERFACES = ['192.168.1.5', 'fd00::5', '127.0.0.1', '::1', 'fe80::1', '10.88.0.1'];

describe('the addresses of a service', () => {
  test.each<[string, readonly string[], boolean]>([
    ['127.0.0.1', ['http://127.0.0.1:8080'], true],
    ['127.0.0.2', ['http://127.0.0.2:8080'], true],
    ['::1', ['http://[::1]:8080'], true],
    ['192.168.1.5', ['http://192.168.1.5:8080'], false],
    ['0.0.0.0', ['http://127.0.0.1:8080', 'http://192.168.1.5:8080', 'http://10.88.0.1:8080'], false],
    [
      '::',
      ['http://127.0.0.1:8080', 'http://[::1]:8080', 'http://192.168.1.5:8080', 'http://[fd00::5]:8080', 'http://10.88.0.1:8080'],
      false,
    ],
  ])('that listens on "%s" are all named, those of this machine first', (bound, urls, isLocal) => {
    expect(describeListening(bound, 8080, INTERFACES)).toEqual({ url: urls[0], urls, isLocal });
  });

  test('are never empty, and every interface counts as reachable even if none is listed', () => {
    expect(describeListening('0.0.0.0', 80, [])).toEqual({ url: 'http://127.0.0.1:80', urls: ['http://127.0.0.1:80'], isLocal: false });
  });
});

describe('the warning of a service', () => {
  const open = { isLocal: false, authEnabled: false, inCluster: false };

  test('says who can use it, and how to change that', () => {
    expect(describeExposure(open)).toMatch(/^Anyone who can reach these addresses can use the models.*SVC_LISTEN to "127.0.0.1:8080"$/);
    expect(describeExposure({ ...open, inCluster: true })).toMatch(/^Anyone .* NetworkPolicy/);
  });

  test('is given only if others can reach it without a credential', () => {
    expect(describeExposure({ ...open, isLocal: true })).toBeUndefined();
    expect(describeExposure({ ...open, authEnabled: true })).toBeUndefined();
  });
});
