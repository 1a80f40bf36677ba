import { expect, test } from '@jest/globals';
import { parseSettings } from '../../../src/schema/settings/settings.ts';

test('a runtime of another tool is refused with what to write instead', () => {
  const problemsOf = (SVC_RUNTIME: string): readonly string[] => {
    const parsed = parseSettings({ SVC_RUNTIME });
    return parsed.ok ? [] : parsed.problems;
  };
  expect(problemsOf('docker')).toEqual([
    'SVC_RUNTIME: Docker is not supported: use "podman", which runs the same images, or "process" (docs/podman.md)',
  ]);
  expect(problemsOf('k8s')).toEqual(['SVC_RUNTIME: Use "kube" for a cluster, not "k8s"']);
  expect(problemsOf('podmam')[0]).toContain('did you mean "podman"?');
});

test('variables of the installer, of svcctl and of tests are ignored, and unknown ones are refused', () => {
  const others = { SVC_ADMIN_PASSWORD: 'x', SVC_HOSTNAME: 'a.test', SVC_TOKEN: 'x', SVC_TEST_HELM: 'helm', SVC_SYSTEMD_IP: '10.0.0.1' };
  expect(parseSettings(others).ok).toBe(true);
  expect(parseSettings({ SVC_TOKENS: 'x' }).ok).toBe(false);
});

test('the user of pods is an id other than root, or "any"', () => {
  const user = (SVC_POD_USER: string) => {
    const parsed = parseSettings({ SVC_POD_USER });
    return parsed.ok ? parsed.settings.SVC_POD_USER : parsed.problems[0];
  };
  expect(['any', '1000680000'].map(user)).toEqual(['any', 1_000_680_000]);
  expect(['0', 'root', '3000000000'].map(user)).toEqual([
    expect.stringContaining('Use the id of a user other than root'),
    expect.stringContaining('or "any"'),
    expect.stringContaining('Use an id up to 2147483647'),
  ]);
});

test('durations and sizes that no setting can mean are refused with their limits', () => {
  const problemOf = (env: Readonly<Record<string, string>>) => {
    const parsed = parseSettings(env);
    return parsed.ok ? '' : parsed.problems[0];
  };
  expect(problemOf({ SVC_PARK_TIMEOUT: '10000d' })).toContain('Use a duration from "0s" to "365d", not "10000d"');
  expect(problemOf({ SVC_BODY_LIMIT: '2000Ti' })).toContain('Use a size from "0" to "1024Ti", not "2000Ti"');
});

test.each(['SVC_PUBLIC_URL', 'SVC_CHAT_URL', 'SVC_PROMETHEUS_URL'])('%s is a URL without a password', (name) => {
  const problem = (url: string) => {
    const parsed = parseSettings({ [name]: url });
    return parsed.ok ? undefined : parsed.problems[0];
  };
  expect(['http://prometheus:9090', 'https://a.test/prometheus/@x'].map(problem)).toEqual([undefined, undefined]);
  for (const wrong of ['prometheus:9090', 'ftp://a.test', '']) expect(problem(wrong)).toContain('begins with "http://"');
  expect(problem('http://anna:geheim@a.test')).toContain('without a user and a password');
});

test('progress for those who wait is off, or comes after 100 ms to an hour', () => {
  const progress = (SVC_WAIT_PROGRESS?: string) => {
    const parsed = parseSettings({ SVC_WAIT_PROGRESS });
    return parsed.ok ? parsed.settings.SVC_WAIT_PROGRESS : parsed.problems.join('; ');
  };
  expect([undefined, 'off', '100ms', '5s', '1h'].map(progress)).toEqual(['off', 'off', 100, 5000, 3_600_000]);
  for (const wrong of ['0s', '99ms', '2h', '5', 'on', '']) {
    expect(progress(wrong)).toContain('SVC_WAIT_PROGRESS: Use "off", or a duration from "100ms" to "1h" such as "5s"');
  }
});

test('the number of processes is from 1 to 64, or that of the cores, and needs the fast path', () => {
  const workers = (SVC_WORKERS: string, SVC_FAST_PATH = '1') => {
    const parsed = parseSettings({ SVC_WORKERS, SVC_FAST_PATH });
    return parsed.ok ? parsed.settings.SVC_WORKERS : parsed.problems.join('; ');
  };
  expect(['1', '2', '64', 'auto'].map((value) => workers(value))).toEqual([1, 2, 64, 'auto']);
  for (const wrong of ['0', '-1', '65', '100', '1.5', 'two', '']) {
    expect(workers(wrong)).toMatch(/^SVC_WORKERS: Use .*64/);
  }
  const conflict = (value: string): string =>
    `Workers serve the fast path only, which is off: set "SVC_FAST_PATH" to 1, or "SVC_WORKERS" to 1 instead of "${value}"`;
  expect([workers('1', '0'), workers('2', '0'), workers('auto', '0')]).toEqual([1, conflict('2'), conflict('auto')]);
});

test('the server of limits is a URL of Valkey or Redis, which no message repeats', () => {
  const parse = (SVC_LIMITS_URL: string, more: object = {}): string => {
    const parsed = parseSettings({ SVC_LIMITS_URL, ...more });
    return parsed.ok ? 'ok' : parsed.problems.join('; ');
  };
  const right = ['redis://valkey', 'rediss://a.example:6380/2', 'valkey://anna:p%40ss@10.0.0.1', 'valkeys://:secret@[::1]:6379/'];
  expect(right.map((url) => parse(url))).toEqual(right.map(() => 'ok'));
  for (const wrong of [
    '',
    'valkey:6379',
    'http://:secret@valkey',
    'redis://:secret@valkey:99999',
    'redis://:secret@valkey/db',
    'redis://:secret@valkey/0?x=1',
    'redis://:se%ret@valkey',
    'redis://:se@ret@valkey',
    'redis://:secret@one,two',
  ]) {
    const problem = parse(wrong);
    expect(problem).toContain('SVC_LIMITS_URL: Use a URL such as "redis://valkey.example.com:6379"');
    expect(problem).not.toMatch(/secret|se%ret|se@ret/);
  }
  expect(parse('redis://valkey', { SVC_LIMITS_PASSWORD_FILE: '/etc/svc/password' })).toBe('ok');
  const alone = parseSettings({ SVC_LIMITS_PASSWORD_FILE: '/etc/svc/password' });
  expect(alone).toMatchObject({ problems: [expect.stringContaining('has no effect without "SVC_LIMITS_URL"')] });
});
