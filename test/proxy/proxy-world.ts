/** The real service with a real slot behind Caddy, whose configuration is the one that the installer writes. */
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { request as httpsRequest } from 'node:https';
import type { IncomingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Agent } from 'undici';
import { freePort } from '../support/free-port.ts';
import { startService, type Service } from '../support/service.ts';
import { startStandInChat, type StandInChat } from './stand-in-chat.ts';

export const HOSTNAME = 'svc-test.local';
export const USER = 'admin';
export const PASSWORD = 'correct horse "battery" $taple';
export const BASIC = `Basic ${Buffer.from(`${USER}:${PASSWORD}`).toString('base64')}`;
export const PROXY_SECRET = 'secret-of-the-proxy-0123456789';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface ProxyWorld {
  readonly service: Service;
  readonly chat: StandInChat;
  readonly origin: string;
  readonly chatOrigin: string;
  readonly httpPort: number;
  /** Trusts the proxy's own authority and no other, and finds its name on this machine. */
  readonly agent: Agent;
  /** `headers`: names and values in turn, so that a name can be sent twice. */
  send(url: string, headers?: readonly string[], body?: string): Promise<Answer>;
  createToken(scope: string): string;
  revokeToken(id: string): void;
  close(): Promise<void>;
}

export async function startProxyWorld(caddy: string): Promise<ProxyWorld> {
  const dir = await mkdtemp(path.join(tmpdir(), 'svc-proxy-'));
  const [httpPort, httpsPort, chatPort] = [await freePort(), await freePort(), await freePort()];
  const origin = `https://${HOSTNAME}:${httpsPort}`;
  const service = await startService({
    runtime: 'process',
    environment: {
      SVC_AUTH_ENABLED: '1',
      SVC_PROXY_SECRET: PROXY_SECRET,
      SVC_PUBLIC_URL: origin,
    },
  });
  for (const model of ['demo-fox', 'demo-clock']) {
    await service.save(model === 'demo-fox' ? 'primary' : 'clock', `provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "${model}"\n`);
  }
  const chat = await startStandInChat();
  const values = {
    ADMIN_SOCKET: `/${dir}/admin.sock`,
    HTTP_PORT: String(httpPort),
    HTTPS_PORT: String(httpsPort),
    STORAGE: `storage file_system ${dir}/store`,
    EMAIL: '',
    USER,
    HASH: execFileSync(caddy, ['hash-password'], { input: `${PASSWORD}\n`, encoding: 'utf8' }).trim(),
    HOSTNAME,
    CHAT_PORT: String(chatPort),
    CHAT_UPSTREAM: String(chat.port),
    API_PORT: new URL(service.url).port,
    PROXY_SECRET,
  };
  const file = path.join(dir, 'Caddyfile');
  await writeFile(file, renderCaddyfile(values));
  const proxy = spawn(caddy, ['run', '--config', file, '--adapter', 'caddyfile'], {
    env: { HOME: dir },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let output = '';
  proxy.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const ca = await waitForAuthority(path.join(dir, 'store/pki/authorities/local/root.crt'), proxy, () => output);
  const lookup: LookupHere = (_name, options, done) => (options.all === true ? done(null, [HERE]) : done(null, HERE.address, HERE.family));
  const world: ProxyWorld = {
    service,
    chat,
    origin,
    chatOrigin: `https://${HOSTNAME}:${chatPort}`,
    httpPort,
    agent: new Agent({ connect: { ca, lookup } }),
    send: async (url, headers = [], body) => await send({ url, headers, body, ca, lookup }),
    createToken: (scope) => changeTokens(service, ['create', '--label', scope, '--scope', scope]),
    revokeToken: (id) => void changeTokens(service, ['revoke', id]),
    async close() {
      proxy.kill('SIGTERM');
      chat.close();
      await world.agent.destroy();
      await service.dispose();
      await rm(dir, { recursive: true, force: true });
    },
  };
  await untilReady(world);
  return world;
}

interface Sent {
  readonly url: string;
  readonly headers: readonly string[];
  readonly body: string | undefined;
  readonly ca: string;
  readonly lookup: LookupHere;
}
type Found = { readonly address: string; readonly family: number };
type LookupHere = (
  name: string,
  options: { readonly all?: boolean | undefined },
  done: (error: null, address: string | Found[], family?: number) => void,
) => void;
const HERE: Found = { address: '127.0.0.1', family: 4 };

export function renderCaddyfile(values: Readonly<Record<string, string>>): string {
  const env = Object.fromEntries(Object.entries(values).map(([key, value]) => [`PROXY_${key}`, value]));
  const script = '. installer/lib/proxy.sh; render_caddyfile installer/templates/Caddyfile';
  const { stdout, stderr, status } = spawnSync('bash', ['-euc', script], { env: { ...env, PATH: process.env['PATH'] }, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

async function waitForAuthority(file: string, proxy: ChildProcess, output: () => string): Promise<string> {
  for (;;) {
    const text = await readFile(file, 'utf8').catch(() => '');
    if (text.includes('END CERTIFICATE')) return text;
    if (proxy.exitCode !== null) throw new Error(output());
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function untilReady(world: ProxyWorld): Promise<void> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const answer = await world.send(`${world.origin}/api/status`).catch(() => undefined);
    const ready = answer?.status === 200 ? (answer.body.match(/"ready":true/g) ?? []).length : 0;
    if (ready >= 2) return;
    if (Date.now() > deadline) throw new Error(`${answer?.body}\n${world.service.output()}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function send({ url, headers, body, ca, lookup }: Sent): Promise<Answer> {
  const { hostname, port, pathname, search } = new URL(url);
  const all = ['Host', `${hostname}:${port}`, ...headers];
  return await new Promise((resolve, reject) => {
    const options = {
      host: hostname,
      port,
      path: pathname + search,
      method: body === undefined ? 'GET' : 'POST',
      headers: all,
      ca,
      lookup,
      agent: false,
    };
    const req = httpsRequest(options, (res) => {
      let text = '';
      res.on('data', (chunk: Buffer) => (text += chunk.toString()));
      res.on('end', () => resolve({ status: res.statusCode ?? 0, headers: res.headers, body: text }));
    });
    req.on('error', reject);
    req.end(body);
  });
}

function changeTokens({ environment }: Service, words: readonly string[]): string {
  return execFileSync(process.execPath, ['src/cli/svcctl.mjs', 'token', ...words], {
    env: { ...environment, PATH: process.env['PATH'] },
    encoding: 'utf8',
  }).trim();
}
