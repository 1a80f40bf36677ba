/** Who reaches the service: what `svcctl doctor` and the end of the installer say. */
import { expect, test } from '@jest/globals';
import { judgeAccess, reportText, type AccessFacts } from '../../src/cli/checks/access-checks.ts';
import { mergeChecks } from '../../src/cli/verbs/doctor.ts';

const NOW = Date.parse('2026-06-01');
const OPEN: AccessFacts = {
  url: 'http://127.0.0.1:8080',
  urls: ['http://gpu-box:8080', 'http://192.168.1.5:8080'],
  isLocal: false,
  authEnabled: false,
  publicUrl: undefined,
  certificate: undefined,
  chat: undefined,
  now: NOW,
};
const LOCAL: AccessFacts = { ...OPEN, urls: ['http://127.0.0.1:8080'], isLocal: true };
const PROXIED: AccessFacts = {
  ...LOCAL,
  authEnabled: true,
  publicUrl: 'https://llm.example.com',
  certificate: { issuer: "Let's Encrypt", expiresAt: Date.parse('2026-08-01') },
  chat: { url: 'https://llm.example.com/chat/', answers: true },
};
const report = (facts: AccessFacts): string => reportText(facts, judgeAccess(facts));
const check = (name: string, facts: AccessFacts) => judgeAccess(facts).find((each) => each.name === name);

test('an open service: every address, who may use it, and how to close it', () => {
  expect(report(OPEN)).toContain('API          http://gpu-box:8080/v1\n');
  expect(report(OPEN)).toMatch(
    /Everyone who reaches these addresses can use them and change slots.*: http:\/\/gpu-box:8080, http:\/\/192\.168\.1\.5:8080\n/,
  );
  expect(report(OPEN)).toContain('SVC_LISTEN=127.0.0.1:8080');
  expect(report(OPEN)).toContain('No chat page');
});

test('a service of this machine alone warns of nobody', () => {
  expect(report(LOCAL)).toContain('Programs on this machine only');
  expect(report(LOCAL)).not.toMatch(/Everyone|To close/);
});

test.each([
  ['no proxy', { ...OPEN, authEnabled: true }],
  ['a proxy', PROXIED],
])('with authentication and %s, the first command has a token', (_what, facts) => {
  expect(report(facts)).toContain('TOKEN=$(sudo -u svc svcctl token create');
  expect(report(facts)).toContain('curl http://127.0.0.1:8080/v1/chat/completions -H "authorization: Bearer $TOKEN"');
  expect(report(facts)).not.toMatch(/Everyone|To close/);
});

test('the first command needs no token without authentication', () => {
  expect(report(OPEN)).not.toMatch(/token/i);
});

test.each([
  ['ok', 'From "Let\'s Encrypt", until 2026-08-01', PROXIED],
  [
    'ok',
    'From the authority of this machine',
    { ...PROXIED, certificate: { issuer: 'Caddy Local Authority - ECC Intermediate', expiresAt: NOW + 1 } },
  ],
  ['fail', 'Expired on 2026-05-31', { ...PROXIED, certificate: { issuer: 'E5', expiresAt: NOW - 1 } }],
  ['fail', 'None for https://llm.example.com', { ...PROXIED, certificate: undefined }],
] as const)('a certificate is %s: %s', (result, found, facts) => {
  expect(check('certificate', facts)).toMatchObject({ result, found: expect.stringContaining(found) });
});

test('without TLS, nothing is said about a certificate', () => {
  expect(check('certificate', OPEN)).toBeUndefined();
  expect(check('certificate', { ...PROXIED, publicUrl: 'http://llm.example.com' })).toBeUndefined();
});

test('a chat page that does not answer is a problem, and the report says where to look', () => {
  const facts: AccessFacts = { ...OPEN, chat: { url: 'http://gpu-box:3001/', answers: false } };
  expect(check('chat', facts)).toMatchObject({ result: 'warn', found: 'http://gpu-box:3001/ does not answer' });
  expect(report(facts)).toContain('journalctl -u svc-chat');
});

test.each([
  [
    { shared: true, gateways: 3, problem: null },
    { result: 'ok', found: '3 gateways count callers together' },
  ],
  [
    { shared: false, gateways: 2, problem: 'connect ECONNREFUSED' },
    { result: 'warn', found: expect.stringMatching(/each of 2 gateways enforces its part of each limit: connect ECONNREFUSED$/) },
  ],
  [{ shared: false, gateways: 1, problem: null }, undefined],
  [undefined, undefined],
])('counts of callers: %j', (limits, expected) => {
  const found = check('limits', { ...OPEN, limits });
  if (expected === undefined) expect(found).toBeUndefined();
  else expect(found).toMatchObject(expected);
});

test('checks without problems share four lines, and every problem has a line of its own', () => {
  const ok = (name: string) => ({ name, result: 'ok', found: name, hint: '' }) as const;
  const names = [
    'address',
    'podman',
    'access',
    'chat',
    'node',
    'memory',
    'disk',
    'hardware',
    'configuration',
    'slots',
    'toolboxes',
    'catalogue',
  ];
  const healthy = [...names, 'settings', 'models', 'open files', 'program of gguf'].map(ok);
  expect(mergeChecks(healthy).map(({ name }) => name)).toEqual(['service', 'access', 'machine', 'files']);
  const disk = { name: 'disk', result: 'warn', found: '0 GiB', hint: 'Free space' } as const;
  const program = { name: 'program of stt', result: 'warn', found: 'Not found', hint: 'Install it' } as const;
  const shown = mergeChecks([...healthy.filter(({ name }) => name !== 'disk'), disk, program]);
  expect(shown.slice(4)).toEqual([disk, program]);
  expect(shown[2]?.found).toBe('node; memory; hardware');
});
