/**
 * The configuration for DNS-01. Modules of DNS providers are plug-ins that no packaged Caddy has, so that it is checked up
 * to the module: where the challenge stands, that Caddy misses nothing but the module, and that the rest is valid.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { describeWithCaddy } from '../support/require/require-caddy.ts';
import { renderCaddyfile } from './proxy-world.ts';

const VALUES = {
  ADMIN_SOCKET: '//run/svc-proxy/admin.sock',
  HTTP_PORT: '80',
  HTTPS_PORT: '443',
  EMAIL: 'email you@example.com',
  USER: 'admin',
  HASH: '$2a$14$1234567890123456789012',
  HOSTNAME: 'llm.example.com',
  CHAT_PORT: '3443',
  CHAT_UPSTREAM: '3001',
  API_PORT: '8080',
  PROXY_SECRET: 'secret',
  DNS_CHALLENGE: 'cloudflare {env.CF_API_TOKEN}',
};
const CHALLENGE = 'dns cloudflare {env.CF_API_TOKEN}';

describeWithCaddy('DNS-01', ({ program }) => {
  const adapt = (text: string) => {
    const dir = mkdtempSync(path.join(tmpdir(), 'svc-dns-'));
    try {
      writeFileSync(path.join(dir, 'Caddyfile'), text);
      return spawnSync(program, ['adapt', '--config', path.join(dir, 'Caddyfile'), '--adapter', 'caddyfile'], { encoding: 'utf8' });
    } finally {
      rmSync(dir, { recursive: true });
    }
  };

  test('both sites have the challenge, and Caddy misses nothing but the module', () => {
    const text = renderCaddyfile(VALUES);
    expect(text.split('\n').filter((line) => line.includes('dns'))).toEqual([`\t\t${CHALLENGE}`, `\t\t${CHALLENGE}`]);
    const { status, stderr } = adapt(text);
    expect([status === 0, stderr]).toEqual([false, expect.stringContaining('dns.providers.cloudflare')]);
  });

  test('with another option in the place of the challenge, the configuration is valid', () => {
    const { status, stdout, stderr } = adapt(renderCaddyfile(VALUES).replaceAll(CHALLENGE, 'protocols tls1.2'));
    expect([status, status === 0 ? '' : stderr]).toEqual([0, '']);
    expect(stdout.match(/"protocol_min":"tls1\.2"/g)?.length).toBe(2);
  });

  test('an authority of the machine needs no challenge', () => {
    expect(renderCaddyfile({ ...VALUES, HOSTNAME: 'gpu.local' })).not.toContain('dns');
  });
});
