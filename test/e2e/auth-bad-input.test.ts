/** What must not harm a service with authentication: malformed requests, and a full disk. And where no secret may appear: in arguments, environments and outputs. */
import { spawn } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { ownEnvironment, startService, type Service } from '../support/service.ts';

const PROXY_SECRET = 'a-secret-of-the-proxy';
const HUB_TOKEN = 'hf_a-secret-of-the-hub';
const LONG = 60_000;
let service: Service;
let admin: string;

beforeAll(async () => {
  const environment = { SVC_AUTH_ENABLED: '1', SVC_PROXY_SECRET: PROXY_SECRET, HF_TOKEN: HUB_TOKEN };
  service = await startService({ runtime: 'process', environment });
  admin = (await svcctl(['token', 'create', '--label', 'admin', '--scope', 'admin'])).out.trim();
}, 120_000);
afterAll(async () => await service.dispose(), LONG);

/** `limits`: shell commands before it. */
async function svcctl(args: readonly string[], limits = ':', environment: Readonly<Record<string, string>> = {}) {
  const child = spawn('/bin/sh', ['-c', `${limits}; exec "$@"`, 'sh', process.execPath, 'src/cli/svcctl.mjs', ...args], {
    env: { ...ownEnvironment(), ...service.environment, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err, code] = await Promise.all([
    readText(child.stdout),
    readText(child.stderr),
    new Promise<number | null>((resolve) => child.once('close', resolve)),
  ]);
  return { code, out, err };
}

/** Sends exactly these header lines, which no client library would, and returns the whole answer. */
async function send(lines: readonly string[]): Promise<string> {
  const { hostname, port } = new URL(service.url);
  const socket = createConnection(Number(port), hostname);
  // The service may close the connection before it has read everything.
  socket.on('error', () => undefined);
  let answer = '';
  socket.on('data', (chunk) => (answer += chunk.toString()));
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.write(`GET /api/slots HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`);
  await closed;
  return answer;
}

const statusOf = (answer: string): string => answer.split(' ')[1] ?? '';
const other = `svc_00000000.${'A'.repeat(43)}`;

describe('A service with authentication', () => {
  test('refuses requests with two different tokens, however they are sent, also if one is valid', async () => {
    const valid = `Authorization: Bearer ${admin}`;
    expect(statusOf(await send([valid]))).toBe('200');
    for (const second of [`Authorization: Bearer ${other}`, `authorization: bearer ${other}`, `X-Api-Key: ${other}`, 'X-API-KEY:']) {
      for (const lines of [
        [valid, second],
        [second, valid],
      ]) {
        const answer = await send(lines);
        expect([lines, statusOf(answer)]).toEqual([lines, '401']);
        expect(answer).toContain('"code":"auth.invalid"');
        expect(answer).not.toContain(admin.slice(13));
      }
    }
  });

  test('refuses tokens of every wrong form, and says nothing about which ids exist', async () => {
    const [id = '', secret = ''] = admin.slice(4).split('.');
    const wrong = [
      '',
      'x',
      'svc_',
      `svc_${id}`,
      `svc_${id}.`,
      `svc_${id}.${secret}x`,
      `svc_${id}.${secret.slice(1)}`,
      `svc_${id.toUpperCase()}x.${secret}`,
    ];
    const more = [
      `SVC_${id}.${secret}`,
      `svc_${id}.${'B'.repeat(43)}`,
      other,
      `svc_${id}.${secret} ${secret}`,
      `svc_${id}%00.${secret}`,
      'é'.repeat(10),
    ];
    const answers = new Set<string>();
    for (const token of [...wrong, ...more]) {
      const answer = await send([`Authorization: Bearer ${token}`]);
      expect([token, statusOf(answer)]).toEqual([token, '401']);
      answers.add(answer.slice(answer.indexOf('{')));
    }
    expect(answers.size).toBe(1);
  });

  test(
    'answers 431 to headers of a megabyte, in the usual shape, and goes on',
    async () => {
      for (const name of ['Authorization: Bearer ', 'X-Forwarded-Email: ', 'X-Api-Key: ']) {
        const answer = await send([`${name}${'A'.repeat(1_000_000)}`]);
        expect([name, statusOf(answer)]).toEqual([name, '431']);
        expect(answer).toContain('"code":"request.headers_too_large"');
      }
      const many = Array.from({ length: 20_000 }, (_each, index) => `X-Forwarded-Email: a${index}`);
      expect(statusOf(await send(many))).toBe('431');
      expect(statusOf(await send([`Authorization: Bearer ${admin}`]))).toBe('200');
    },
    LONG,
  );

  test(
    'loses no token where the disk is full, and shows none that was not stored',
    async () => {
      const file = join(service.configDir, 'tokens.toml');
      const before = await readFile(file, 'utf8');
      const { code, out, err } = await svcctl(['token', 'create', '--label', 'lost'], 'ulimit -f 0');
      expect({ code, out }).toEqual({ code: 1, out: '' });
      expect(err).toMatch(/^error: Cannot write (?:to )?"[^"]+"/);
      expect(err).not.toMatch(/svc_[0-9a-f]{8}\./);
      const revoked = await svcctl(['token', 'revoke', admin.slice(4, 12)], 'ulimit -f 0');
      expect({ code: revoked.code, out: revoked.out }).toEqual({ code: 1, out: '' });
      expect(await readFile(file, 'utf8')).toBe(before);
      expect((await readdir(service.configDir)).filter((name) => name.endsWith('.tmp'))).toEqual([]);
      expect(statusOf(await send([`Authorization: Bearer ${admin}`]))).toBe('200');
      // Nothing that failed is in the way.
      expect(await svcctl(['token', 'create', '--label', 'later'])).toMatchObject({ code: 0 });
    },
    LONG,
  );

  test('keeps secrets out of arguments, of environments of other programs, and of all output, also when it crashes', async () => {
    await service.save('primary', 'backend = "cpu"\n[model]\ndefault = "demo-fox"\n');
    const headers = { authorization: `Bearer ${admin}`, 'content-type': 'application/json' };
    const chat = async (): Promise<number> =>
      (
        await fetch(`${service.url}/v1/chat/completions`, {
          method: 'POST',
          headers,
          body: '{"model":"primary","max_tokens":1,"messages":[{"role":"user","content":"Hi"}]}',
        })
      ).status;
    await eventually('the model answers', async () => (await chat()) === 200, LONG);
    const following = svcctl(['slot', 'logs', 'primary', '--follow', '--server', service.url], ':', { SVC_TOKEN: admin });
    const secrets = [admin.slice(13), PROXY_SECRET, HUB_TOKEN];
    let processes = await readProcesses();
    await eventually('svcctl runs', async () => {
      processes = await readProcesses();
      return processes.some(({ args, environment }) => args.includes('--follow') && environment.includes(admin));
    });
    const engines = processes.filter(({ args }) => args.includes(service.modelsDir) && !args.includes(' serve'));
    expect(engines.length).toBeGreaterThan(0);
    for (const { args } of processes) for (const secret of secrets) expect(args).not.toContain(secret);
    for (const { environment } of engines) for (const secret of [...secrets, ' SVC_']) expect(` ${environment}`).not.toContain(secret);
    await service.kill('SIGABRT');
    await following;
    for (const secret of secrets) expect(service.output()).not.toContain(secret);
  }, 120_000);
});

interface Process {
  readonly args: string;
  readonly environment: string;
}

/** All processes that this user can see, as `ps` reads them. */
async function readProcesses(): Promise<readonly Process[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const read = async (pid: string, name: string): Promise<string> =>
    (await readFile(`/proc/${pid}/${name}`, 'utf8').catch(() => '')).replaceAll('\0', ' ');
  return await Promise.all(pids.map(async (pid) => ({ args: await read(pid, 'cmdline'), environment: await read(pid, 'environ') })));
}
