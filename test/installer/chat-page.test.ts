/** The chat page and the secret of the proxy, as the installer makes them: its functions run here with the files of a directory, and programs that only say how they were called. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), 'svc-installer-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

const PARTS = `
  eval "$(sed -n '/^fail() {/,/^}/p; /^say() {/p' installer/install.sh)"
  for part in changes release service proxy auth chat; do . installer/lib/$part.sh; done
  SETTINGS=$DIR/api.env CHAT_ENV=$DIR/chat.env CHAT_UNIT=$DIR/chat.service CADDYFILE=$DIR/Caddyfile CHAT_DATA=$DIR/data PREFIX=$DIR/opt VERSION=1.2.3
  DRY_RUN=0 RESTART=0 CHAT=on CHAT_ASKED=0 CHAT_IMAGE=$DEFAULT_CHAT_IMAGE
  chown() { :; }
  stat() { :; }
  systemctl() { :; }`;

/** Runs a script with the parts of the installer. Returns what it has written. */
function run(script: string, settings: string | undefined = ''): string {
  if (settings !== undefined) writeFileSync(path.join(dir, 'api.env'), settings);
  const env = { PATH: `${path.resolve('node_modules/.bin')}:${process.env['PATH'] ?? ''}`, DIR: dir, RELEASE: process.cwd() };
  const { stdout, stderr, status } = spawnSync('bash', ['--norc', '-euc', `set -o pipefail\n${PARTS}\n${script}`], {
    env,
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout;
}
const read = (name: string): string => readFileSync(path.join(dir, name), 'utf8');
/** Podman reads the file from top to bottom. */
const hostIn = (name: string): string | undefined => [...read(name).matchAll(/^HOST=(.*)$/gm)].at(-1)?.[1];

describe('The address of the chat page', () => {
  const write = `ensure_chat_token() { CHAT_TOKEN=none; }; ensure_chat_env "$(setting SVC_AUTH_ENABLED)"; write_chat_start "$DIR/start"`;

  test.each([
    ['', '0.0.0.0'],
    ['SVC_LISTEN=127.0.0.1:8080\n', '127.0.0.1'],
    ['SVC_LISTEN=192.168.1.5:8080\n', '192.168.1.5'],
    ['SVC_LISTEN=[::1]:9000\n', '::1'],
    ['SVC_AUTH_ENABLED=1\n', '127.0.0.1'],
    ['SVC_AUTH_ENABLED=1\nSVC_LISTEN=0.0.0.0:8080\n', '127.0.0.1'],
  ])('with the settings %j', (settings, host) => {
    run(write, settings);
    expect([hostIn('chat.env'), hostIn('start')]).toEqual([host, host]);
  });

  test('follows that of the service at each start, and with the next run of the installer', () => {
    run(write, '');
    run('write_chat_start "$DIR/start"', 'SVC_LISTEN=127.0.0.1:8080\n');
    expect([hostIn('chat.env'), hostIn('start')]).toEqual(['0.0.0.0', '127.0.0.1']);
    run(write, 'SVC_LISTEN=127.0.0.1:8080\n');
    expect(hostIn('chat.env')).toBe('127.0.0.1');
    const mine = `${read('chat.env')}HOST=10.0.0.1\n`;
    writeFileSync(path.join(dir, 'chat.env'), mine);
    run('write_chat_start "$DIR/start"', '');
    expect([hostIn('start'), read('start')]).toEqual(['10.0.0.1', mine.replace('HOST=127.0.0.1', 'HOST=0.0.0.0')]);
  });

  test('is read by the unit whenever the page or the service starts', () => {
    const unit = readFileSync('installer/templates/svc-chat.service', 'utf8');
    expect(unit).toMatch(/^PartOf=svc-api\.service$/m);
    expect(unit).toMatch(/^WantedBy=.*\bsvc-api\.service$/m);
    expect(unit).toMatch(/^ExecStartPre=\/bin\/bash .*\/render-chat-env\.sh --start %t\/svc-chat\.env$/m);
    expect(unit).toMatch(/--env-file %t\/svc-chat\.env /);
  });
});

test('how large the chat page is, and how to do without it, is said before podman and the page are fetched', () => {
  const script = `
    command() { [ "$2" != podman ]; }
    podman() { return 1; }
    install_podman() { echo FETCHED; }
    download_chat_image() { echo FETCHED; }
    ensure_chat_env() { :; }
    start_chat() { :; }
    chmod() { :; }
    install() { :; }
    render_chat_unit() { echo unit; }
    install_chat`;
  const [first = '', ...later] = run(script).split('\n');
  expect(first).toMatch(/^The chat page runs in podman and needs the image \S+ \(.*\d GB.*\)\. To do without it: --chat=off$/);
  expect(later.filter((line) => line === 'FETCHED')).toHaveLength(2);
  expect(run(`podman() { return 0; }; announce_chat_image`)).toBe('');
});

describe('The secret of the proxy', () => {
  test('is in the settings of every installation, and stays', () => {
    run('ensure_settings', 'SVC_LISTEN=127.0.0.1:8080\n');
    const settings = read('api.env');
    expect(settings).toMatch(/^SVC_LISTEN=127\.0\.0\.1:8080\nSVC_PROXY_SECRET=[0-9a-f]{64}\n$/);
    expect(run('ensure_settings; echo "$RESTART"', settings)).toBe('0\n');
    expect(read('api.env')).toBe(settings);
  });

  test('restarts a service that has authentication on already, and says what a proxy must send', () => {
    const text = run('ensure_settings; echo "restart $RESTART"', 'SVC_AUTH_ENABLED=1\n');
    expect(text).toContain('X-Svc-Proxy-Secret');
    expect(text).toContain('restart 1\n');
  });
});

describe('Sessions of the chat page', () => {
  const tokens = `svcctl_as_service() {
    if [ "$2" = revoke ]; then echo "$*" >>"$DIR/revoked"; return; fi
    printf '%s\\n' 'ID SCOPE CREATED USED LABEL' '0a1b2c3d v1-only 1d never chat-page' '1a1b2c3d v1-only 1d never chat session of admin' '2a1b2c3d v1-only 1d 1m chat session of ada'
  }`;
  const turnOn = `${tokens}
    ensure_proxy_program() { :; }
    restart_service() { :; }
    start_proxy() { [ ! -e "$DIR/revoked" ] || echo TOO EARLY; }
    caddy() { cat >/dev/null; echo '$2a$14$new'; }
    PROXY_HOSTNAME=gpu.local PROXY_EMAIL='' PROXY_UNIT=$DIR/proxy.service AVAHI_FILE=$DIR/avahi ADMIN_USER=admin KEEP_HASH=0 ADMIN_PASSWORD=12345678`;
  const revoked = (): string => {
    try {
      return read('revoked');
    } catch {
      return '';
    }
  };

  test.each([
    ['another password', `password_is_accepted() { return 1; }`, true],
    ['another user', `ADMIN_USER=ada; password_is_accepted() { return 0; }`, true],
    ['the same user and password', `password_is_accepted() { return 0; }`, false],
    ['neither given', 'KEEP_HASH=1', false],
  ])('with %s', (_what, how, ends) => {
    writeFileSync(path.join(dir, 'Caddyfile'), '(login) {\n\tbasicauth {\n\t\tadmin $2a$14$old\n\t}\n}\n');
    expect(run(`${turnOn}\n${how}\nturn_auth_on`)).not.toContain('TOO EARLY');
    expect(revoked()).toBe(ends ? 'token revoke 1a1b2c3d 2a1b2c3d\n' : '');
    expect(read('Caddyfile')).not.toMatch(/__Host-svc-chat=[0-9a-f]/);
  });

  test('end with --auth=off, and with the way back by hand', () => {
    run(`${tokens}\nrestart_service() { :; }\nAVAHI_FILE=$DIR/avahi\nturn_auth_off`);
    expect(revoked()).toBe('token revoke 1a1b2c3d 2a1b2c3d\n');
    run(`${tokens}\nensure_chat_token 0`);
    expect(revoked()).toBe('token revoke 1a1b2c3d 2a1b2c3d\n'.repeat(2));
  });
});
