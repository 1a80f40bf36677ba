import { describe, expect, test } from '@jest/globals';
import { collectHostNames, isKnownHost, parseAuthority, type NameFacts } from '../../../../src/api/server/decide/host-names.ts';

const FACTS: NameFacts = {
  hostname: 'gpu-box',
  hostsFile: '127.0.0.1 localhost\n127.0.1.1\tgpu-box.home.example gpu-box # this machine\n10.0.0.9 other.example other\n',
  resolverFile: 'nameserver 10.0.0.1\nsearch lan corp.example.\n',
  listenHosts: ['0.0.0.0'],
  publicUrl: undefined,
  allowed: [],
  services: undefined,
};

function knows(authority: string, facts: Partial<NameFacts> = {}): boolean | undefined {
  const parsed = parseAuthority(authority);
  return parsed && isKnownHost(parsed.host, collectHostNames({ ...FACTS, ...facts }));
}

describe('a known host', () => {
  test.each([
    ['localhost'],
    ['LOCALHOST:8080'],
    ['localhost.:8080'],
    ['127.0.0.1'],
    ['192.168.1.5:8080'],
    ['255.255.255.255'],
    ['[::1]:8080'],
    ['[fd00::1]'],
    ['[::ffff:192.168.1.5]:80'],
    ['[fe80::1%25eth0]:8080'],
    ['gpu-box'],
    ['GPU-Box.local'],
    ['gpu-box.lan'],
    ['gpu-box.corp.example'],
    ['gpu-box.home.example:8080'],
    ['host.docker.internal:8080'],
    ['host.containers.internal'],
  ])('is "%s"', (authority) => expect(knows(authority)).toBe(true));
});

describe('an unknown host', () => {
  test.each([
    ['evil.test'],
    ['evil.test:8080'],
    ['localhost.evil.test'],
    ['gpu-box.evil.test'],
    ['notlocalhost'],
    ['foo.localhost'],
    ['other.example'],
    ['127.0.0.1.evil.test'],
    ['127.0.0.1.nip.io'],
    ['127.1'],
    ['2130706433'],
    ['0x7f.0.0.1'],
    ['256.1.1.1'],
    ['1.2.3'],
    ['1.2.3.4.5'],
    ['01.2.3.4'],
    ['svc'],
  ])('is "%s"', (authority) => expect(knows(authority)).toBe(false));
});

describe('a malformed authority', () => {
  test.each([
    [''],
    [' '],
    ['::1'],
    ['[::1'],
    ['[evil.test]'],
    ['a b'],
    ['user@localhost'],
    ['localhost:'],
    ['localhost:port'],
    ['localhost:123456'],
    ['localhost/x'],
    ['-a'],
    ['ä.test'],
    [`${'a'.repeat(254)}`],
  ])('is "%s"', (authority) => expect(parseAuthority(authority)).toBeUndefined());
});

describe('the names of a service', () => {
  test('include those that the operator lists, with wildcards for whole domains', () => {
    const allowed = ['AI.example.com.', '*.tail1234.ts.net'];
    expect(knows('ai.example.com', { allowed })).toBe(true);
    expect(knows('gpu.tail1234.ts.net', { allowed })).toBe(true);
    expect(knows('tail1234.ts.net', { allowed })).toBe(false);
    expect(knows('eviltail1234.ts.net', { allowed })).toBe(false);
    expect(knows('anything.test', { allowed: ['*'] })).toBe(true);
  });

  test('include the name in SVC_PUBLIC_URL, and those in SVC_LISTEN and SVC_MANAGEMENT_LISTEN', () => {
    for (const name of ['svc.lan:8080', 'admin.lan']) expect(knows(name, { listenHosts: ['svc.lan', 'admin.lan'] })).toBe(true);
    expect(knows('svc.example.com', { publicUrl: 'https://SVC.example.com:8443/ai' })).toBe(true);
  });

  test.each([
    ['svc', true],
    ['svc.models', true],
    ['svc.models.svc', true],
    ['svc.models.svc.cluster.example:80', true],
    ['svc.models.svc.cluster.local', false],
    ['svc-management.models.svc:80', true],
    ['svc.other', false],
    ['other.models.svc', false],
  ])('in a cluster: "%s" is known: %s', (authority, known) => {
    const resolverFile = 'search models.svc.cluster.example svc.cluster.example cluster.example\n';
    expect(knows(authority, { resolverFile, services: { names: ['svc', 'svc-management'], namespace: 'models' } })).toBe(known);
  });

  test('in a cluster whose resolver does not say its domain end with "cluster.local"', () => {
    expect(
      knows('svc.models.svc.cluster.local', { resolverFile: '', services: { names: ['svc', 'svc-management'], namespace: 'models' } }),
    ).toBe(true);
  });

  test('do not depend on a domain if the host has no name', () => {
    expect(knows('lan', { hostname: '' })).toBe(false);
    expect(knows('.lan', { hostname: '' })).toBeUndefined();
  });
});
