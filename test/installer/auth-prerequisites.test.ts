/** What can prevent `--auth=basic`: each stops the installer with one line that says what to do. The functions of the installer run here with programs that answer as those of such a machine. */
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';

const NEEDED = ['bash', 'cut', 'grep', 'head', 'sed', 'tr', 'uname', 'dirname', 'cat'];
let bin = '';

beforeEach(async () => {
  bin = await mkdtemp(path.join(tmpdir(), 'svc-programs-'));
  for (const name of NEEDED) await symlink(await pathOf(name), path.join(bin, name));
  await program('systemctl', 'exit 3');
});
afterEach(async () => await rm(bin, { recursive: true }));

async function pathOf(name: string): Promise<string> {
  const { stdout } = await run('/bin/sh', ['-c', `command -v ${name}`], process.env['PATH'] ?? '');
  return stdout.trim();
}

/** A program of the machine, which notes how it was called. */
async function program(name: string, script: string): Promise<void> {
  const file = path.join(bin, name);
  await writeFile(file, `#!${bin}/bash\necho "${name} $*" >>"${bin}/calls"\n${script}\n`);
  await chmod(file, 0o755);
}

const calls = async (): Promise<readonly string[]> =>
  (await readFile(path.join(bin, 'calls'), 'utf8').catch(() => '')).split('\n').filter(Boolean);

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function run(file: string, args: readonly string[], programs: string): Promise<Ran> {
  return new Promise((resolve) => {
    const env = { PATH: programs, RELEASE: process.cwd(), SVC_HOSTNAME: 'gpu.local', SVC_ADMIN_USER: 'ada' };
    const child = execFile(file, args, { env }, (_error, stdout, stderr) => resolve({ code: child.exitCode ?? -1, stdout, stderr }));
  });
}

/** Runs the checks of `--auth=basic` with these ports, up to the question for a password. */
async function check(http: number, https: number, dnsChallenge = ''): Promise<Ran> {
  const script = `
    SVC_DNS_CHALLENGE='${dnsChallenge}'
    eval "$(sed -n '/^fail() {/,/^}/p' installer/install.sh)"
    . installer/lib/service.sh
    . installer/lib/proxy.sh
    . installer/lib/auth.sh
    CADDYFILE=/nonexistent/Caddyfile PROXY_HTTP_PORT=${http} PROXY_HTTPS_PORT=${https} PROXY_CHAT_PORT=0
    read_credentials() { echo passed; }
    check_auth`;
  return run(path.join(bin, 'bash'), ['--norc', '-c', script], bin);
}

async function takenPort(): Promise<{ readonly port: number; readonly close: () => Promise<void> }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, () => resolve()));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('There is no port');
  return { port: address.port, close: async () => new Promise((resolve) => server.close(() => resolve())) };
}

const UPSTREAM = 'install.sh: Install Caddy first (https://caddyserver.com/docs/install): ';
const ASKING = /^(?:systemctl --quiet is-active|apt-cache show|apt-get update|dnf --quiet info|dpkg --verify) ?/;

test.each([
  ['apt-get', ['apt-get', 'apt-cache'], 'the package sources of this machine do not have it'],
  ['dnf', ['dnf'], 'the package sources of this machine do not have it'],
  ['neither', [], 'this distribution has no apt-get or dnf'],
])('Caddy is not packaged (%s): stops with upstream’s instructions, and only asks', async (_name, programs, reason) => {
  for (const name of programs) await program(name, 'exit 100');
  expect(await check(0, 0)).toEqual({ code: 1, stdout: '', stderr: `${UPSTREAM}${reason}\n` });
  expect((await calls()).filter((call) => !ASKING.test(call))).toEqual([]);
});

test.each(['80', '443'])('port %s is taken: stops with a line that says so, and only asks', async (which) => {
  await program('caddy', 'exit 0');
  const taken = await takenPort();
  try {
    const refused = { code: 1, stdout: '', stderr: `install.sh: Stop the program that uses port ${taken.port}: the proxy needs it\n` };
    expect(await (which === '80' ? check(taken.port, 0) : check(0, taken.port))).toEqual(refused);
    expect((await calls()).filter((call) => !ASKING.test(call))).toEqual([]);
  } finally {
    await taken.close();
  }
});

test.each([
  ['$(id) {env.A}', 'Set SVC_DNS_CHALLENGE to a provider and the variables that it needs'],
  ['cloudflare my-secret', 'Set SVC_DNS_CHALLENGE to a provider and the variables that it needs'],
  ['route53', 'Install a Caddy with the module dns.providers.route53'],
  ['cloudflare {env.CF_API_TOKEN}', undefined],
])('the DNS challenge "%s" passes only if Caddy has the module, and its secrets are variables', async (challenge, refusal) => {
  await program('caddy', 'echo dns.providers.cloudflare');
  expect(await check(0, 0, challenge)).toEqual(
    refusal === undefined
      ? { code: 0, stdout: 'passed\n', stderr: '' }
      : { code: 1, stdout: '', stderr: expect.stringContaining(`install.sh: ${refusal}`) },
  );
});

test('a machine with Caddy and free ports passes, and so does one whose package sources have it', async () => {
  await program('apt-get', 'exit 0');
  await program('apt-cache', 'exit 0');
  expect(await check(0, 0)).toMatchObject({ code: 0, stdout: 'passed\n' });
  await program('caddy', 'exit 0');
  expect(await check(0, 0)).toMatchObject({ code: 0, stdout: 'passed\n' });
});

test('the ports are 80 and 443, and everything is checked before the installer changes anything', async () => {
  const text = await readFile('installer/lib/auth.sh', 'utf8');
  expect(text).toContain('PROXY_HTTP_PORT=80 PROXY_HTTPS_PORT=443');
  const release = await readFile('installer/lib/release.sh', 'utf8');
  const [, before] = /^install_release\(\) \{\n(.*?)^[^\n]*check_auth$/ms.exec(release) ?? [];
  expect(before).toMatch(/\bcheck_port\b/);
  expect(before).not.toMatch(/\b(?:change|ensure_\w+|place_\w+|systemctl)\b/);
});
