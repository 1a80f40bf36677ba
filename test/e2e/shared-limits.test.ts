/**
 * Two services that count callers together in a real Valkey or Redis: floods over both, and a server that is killed or
 * stopped. `SVC_TEST_SECONDS=30` floods for longer (`npm run test:long -- limits`).
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { pause, startService, type Service } from '../support/service.ts';
import { describeWithValkey, startValkey, type ValkeyServer } from '../support/valkey/valkey-server.ts';

/** Less than the minute for which limits hold, so that what is admitted is what counts. */
const FLOOD_MS = Math.min(45, Number(process.env['SVC_TEST_SECONDS'] ?? 8)) * 1000;
const CONNECTIONS = 32;
const SECRET = 'a-secret-of-the-proxy';
const PASSWORD = 'the-password-of-the-server';
/** Less than is estimated by the length of the body, so that the limit is never exceeded. */
const TOKENS_EACH = 40;
const LIMITS = {
  requests: 'requests_per_minute = 300',
  tokens: 'tokens_per_minute = 8000',
  flight: 'max_in_flight = 10',
  SIGKILL: 'requests_per_minute = 60',
  SIGSTOP: 'requests_per_minute = 60',
  // Room for no request, whatever is known of the last answers.
  restart: 'tokens_per_day = 370',
  again1: 'requests_per_minute = 40',
  again2: 'requests_per_minute = 40',
  anybody: 'requests_per_minute = 1000000',
} as const;
type Caller = keyof typeof LIMITS;
const CALLERS: readonly Caller[] = ['requests', 'tokens', 'flight'];

const headersOf = (caller: Caller) => ({
  'x-forwarded-email': `${caller.toLowerCase()}@example.com`,
  'x-svc-proxy-secret': SECRET,
  'content-type': 'application/json',
});

/** Answers after a while with always as many tokens, and knows how many requests of each caller it had at once. */
async function startUpstream() {
  const inFlight = new Map<string, number>();
  const most = new Map<string, number>();
  const server: Server = createServer((req, res) => {
    const pieces: Buffer[] = [];
    req.on('data', (piece: Buffer) => pieces.push(piece));
    req.on('end', () => {
      res.setHeader('content-type', 'application/json');
      if (req.method === 'GET') return void res.end('{"object":"list","data":[{"id":"counting"}]}');
      const body: { messages: readonly { content: string }[] } = JSON.parse(Buffer.concat(pieces).toString());
      const caller = body.messages[0]?.content ?? '';
      const now = (inFlight.get(caller) ?? 0) + 1;
      inFlight.set(caller, now);
      most.set(caller, Math.max(now, most.get(caller) ?? 0));
      setTimeout(() => {
        inFlight.set(caller, (inFlight.get(caller) ?? 0) - 1);
        const usage = { prompt_tokens: TOKENS_EACH - 20, completion_tokens: 20 };
        res.end(JSON.stringify({ choices: [{ message: { role: 'assistant', content: 'Hello' } }], usage }));
      }, 30);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return { server, most, port: typeof address === 'object' && address !== null ? address.port : 0 };
}

describeWithValkey('Two services and one server', () => {
  let valkey: ValkeyServer;
  let services: readonly Service[] = [];
  let upstream: Awaited<ReturnType<typeof startUpstream>>;
  let dir: string;

  async function startOne(index: number): Promise<Service> {
    const service = await startService({
      runtime: 'process',
      environment: {
        SVC_AUTH_ENABLED: '1',
        SVC_PROXY_SECRET: SECRET,
        SVC_LIMITS_URL: `redis://127.0.0.1:${valkey.port}`,
        SVC_LIMITS_PASSWORD_FILE: join(dir, 'password'),
        // One forwards all requests itself, the other one has workers as well.
        SVC_WORKERS: index === 0 ? '1' : '3',
      },
    });
    const tables = Object.entries(LIMITS).map(([caller, limit]) => `[callers."${caller.toLowerCase()}@example.com"]\n${limit}\n`);
    await writeFile(join(service.configDir, 'tokens.toml'), tables.join('\n'), { mode: 0o600 });
    const remote = `[remote]\nurl = "http://127.0.0.1:${upstream.port}/v1"\nprivate = true\n`;
    await service.save('primary', `provider = "remote"\n[model]\ndefault = "counting"\n${remote}`);
    await eventually('it answers within limits', async () => {
      const { status, headers } = await ask(service, 'anybody');
      return status === 200 && headers.get('x-ratelimit-limit-requests') !== null;
    });
    return service;
  }

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'svc-limits-'));
    await writeFile(join(dir, 'password'), `${PASSWORD}\n`);
    valkey = await startValkey('--requirepass', PASSWORD);
    upstream = await startUpstream();
    services = await Promise.all([startOne(0), startOne(1)]);
    await untilShared(true);
  }, 120_000);
  afterAll(async () => {
    await Promise.all(services.map((service) => service.dispose()));
    await valkey?.dispose();
    upstream?.server.closeAllConnections();
    upstream?.server.close();
    await rm(dir, { recursive: true, force: true });
  }, 60_000);

  const ask = async ({ url }: Service, caller: Caller): Promise<Response> =>
    await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: headersOf(caller),
      body: JSON.stringify({ model: 'primary', max_tokens: 20, messages: [{ role: 'user', content: caller }] }),
    });

  const read = async ({ url }: Service, path: string): Promise<string> =>
    await (await fetch(`${url}${path}`, { headers: headersOf('anybody') })).text();
  const statesOf = async (): Promise<{ shared: boolean; gateways: number; problem: string | null }[]> =>
    await Promise.all(services.map(async (service) => JSON.parse(await read(service, '/api/status')).limits));
  const untilShared = async (wanted: boolean): Promise<void> =>
    await eventually(
      `shared: ${String(wanted)}`,
      async () => (await statesOf()).every(({ shared, gateways }) => shared === wanted && gateways === 2),
      30_000,
    );

  /** Requests that are admitted of each service. Each connection uses both, and the callers in turn. */
  async function flood(callers: readonly Caller[], ms: number): Promise<Record<string, readonly [number, number]>> {
    const admitted = new Map<string, [number, number]>(callers.map((caller) => [caller, [0, 0]]));
    const endsAt = performance.now() + ms;
    const client = async (number: number): Promise<void> => {
      for (let turn = number; performance.now() < endsAt; turn += 1) {
        const index = turn % 2 === 0 ? 0 : 1;
        const caller = callers[(turn >> 1) % callers.length] ?? 'requests';
        const service = services[index];
        if (service === undefined) throw new Error('no service');
        const { status, body } = await ask(service, caller);
        await body?.cancel();
        const counts = admitted.get(caller);
        if (status === 200 && counts !== undefined) counts[index] += 1;
        else if (status !== 429) throw new Error(`status ${status}`);
        // A client that ignores what it is told, but not a busy loop.
        if (status === 429) await pause(20);
      }
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, async (_, number) => await client(number)));
    return Object.fromEntries(admitted);
  }
  const sum = (counts: readonly number[] = []): number => counts.reduce((total, count) => total + count, 0);

  test(`${CONNECTIONS} connections for ${FLOOD_MS / 1000} s never exceed a limit by more than 1 %, and use it up`, async () => {
    const admitted = await flood(CALLERS, FLOOD_MS);
    const tokens = sum(admitted['tokens']) * TOKENS_EACH;
    const mostInFlight = upstream.most.get('flight') ?? 0;
    expect(sum(admitted['requests'])).toBeLessThanOrEqual(303);
    expect(sum(admitted['requests'])).toBeGreaterThanOrEqual(297);
    expect(tokens).toBeLessThanOrEqual(8080);
    expect(tokens).toBeGreaterThanOrEqual(7600);
    expect(mostInFlight).toBeLessThanOrEqual(10);
    expect(mostInFlight).toBeGreaterThanOrEqual(8);
  }, 120_000);

  test.each([
    ['SIGKILL', 'again1'],
    ['SIGSTOP', 'again2'],
  ] as const)(
    '%s: requests go on within the share of each, status says so, and counts are shared again afterwards',
    async (signal, later) => {
      expect(await statesOf()).toEqual(Array(2).fill({ shared: true, gateways: 2, problem: null }));
      if (signal === 'SIGKILL') await valkey.kill();
      else valkey.signal('SIGSTOP');
      // The flood begins before anybody has noticed.
      const { [signal]: shares = [] } = await flood([signal], 3000);
      expect(shares).toHaveLength(2);
      for (const share of shares) expect([share, share <= 30, share >= 27]).toEqual([share, true, true]);
      await untilShared(false);
      for (const { problem } of await statesOf()) expect(problem).toMatch(signal === 'SIGKILL' ? /ECONNREFUSED|closed/ : /within \d+ ms/);
      for (const service of services) expect(await read(service, '/api/metrics')).toContain('\nsvc_limits_shared 0\n');

      if (signal === 'SIGKILL') await valkey.start();
      else valkey.signal('SIGCONT');
      await untilShared(true);
      for (const service of services) expect(await read(service, '/api/metrics')).toContain('\nsvc_limits_shared 1\n');
      const admitted = await flood([signal, later], 2000);
      // What was used meanwhile still counts, and the limit of somebody else holds over both again.
      expect(sum(shares) + sum(admitted[signal])).toBeLessThanOrEqual(60);
      expect(sum(admitted[later])).toBe(40);
    },
    120_000,
  );

  test('a gateway that is killed and starts again has forgotten nothing', async () => {
    const [one, other] = services;
    if (one === undefined || other === undefined) throw new Error('no service');
    for (let count = 0; count < 20; count += 1) await (await ask(one, 'restart')).body?.cancel();
    expect((await ask(one, 'restart')).status).toBe(429);
    await one.kill('SIGKILL');
    await one.start();
    await eventually('it is shared', async () => (await statesOf()).every(({ shared }) => shared), 30_000);
    await eventually('it answers', async () => (await ask(one, 'anybody')).status === 200, 30_000);
    expect([(await ask(one, 'restart')).status, (await ask(other, 'restart')).status]).toEqual([429, 429]);
  }, 120_000);

  test('nothing that the services say contains the password', () => {
    for (const service of services) {
      expect(service.output()).toContain('SVC_LIMITS_URL');
      expect(service.output()).not.toContain(PASSWORD);
    }
  });
});
