/** Revocation of a token that many connections use as fast as they can, for `SVC_TEST_SECONDS` (30 by `npm run test:long -- tokens`). */
import { spawn } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Client } from 'undici';
import { eventually } from '../support/eventually.ts';
import { ownEnvironment, pause, startService, type Service } from '../support/service.ts';

const LOAD_MS = Number(process.env['SVC_TEST_SECONDS'] ?? 0.4) * 1000;
const CONNECTIONS = 32;
/** Each revokes another token at another moment. */
const ROUNDS = 4;
let service: Service;
let admin: string;

beforeAll(async () => {
  service = await startService({ runtime: 'process', environment: { SVC_AUTH_ENABLED: '1' } });
  admin = (await svcctl('token', 'create', '--label', 'admin', '--scope', 'admin')).trim();
}, 120_000);
afterAll(async () => await service.dispose(), 60_000);

async function svcctl(...args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, ['src/cli/svcctl.mjs', ...args], {
    env: { ...ownEnvironment(), ...service.environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let out = '';
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  expect(await new Promise<number | null>((resolve) => child.once('close', resolve))).toBe(0);
  return out;
}

async function createToken(): Promise<{ readonly id: string; readonly token: string }> {
  const response = await fetch(`${service.url}/api/auth/tokens`, {
    method: 'POST',
    headers: { authorization: `Bearer ${admin}`, 'content-type': 'application/json' },
    body: JSON.stringify({ label: 'load', scope: 'all' }),
  });
  const { id, token } = Object(await response.json());
  return { id: String(id), token: String(token) };
}

interface Sent {
  readonly startedAt: number;
  readonly status: number;
}

interface Load {
  readonly index: number;
  readonly token: string;
  readonly sent: Sent[];
  readonly goesOn: () => boolean;
}

/** One request after another on a connection of its own: half of them through the framework, half on the path of inference. */
async function load({ index, token, sent, goesOn }: Load): Promise<void> {
  const client = new Client(service.url);
  const common = { headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' } };
  while (goesOn()) {
    const startedAt = performance.now();
    const { statusCode, body } = await client.request(
      index % 2 === 0
        ? { ...common, method: 'GET', path: '/api/slots' }
        : { ...common, method: 'POST', path: '/v1/embeddings', body: '{"model":"none","input":"a"}' },
    );
    await body.dump();
    sent.push({ startedAt, status: statusCode });
  }
  await client.close();
}

test.each([
  [
    'the API',
    async (id: string) => {
      const { status } = await fetch(`${service.url}/api/auth/tokens/${id}`, {
        method: 'DELETE',
        headers: { authorization: `Bearer ${admin}` },
      });
      expect(status).toBe(204);
    },
  ],
  ['svcctl', async (id: string) => void (await svcctl('token', 'revoke', id))],
])(
  'no request that begins after a revocation by %s is accepted',
  async (_, revoke) => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { id, token } = await createToken();
      let goesOn = true;
      const sent: Sent[] = [];
      const loads = Array.from({ length: CONNECTIONS }, async (__, index) => await load({ index, token, sent, goesOn: () => goesOn }));
      await pause(LOAD_MS);
      await revoke(id);
      const revokedAt = performance.now();
      await eventually(
        'requests were sent after the revocation',
        () => sent.filter(({ startedAt }) => startedAt >= revokedAt).length > 10 * CONNECTIONS,
        60_000,
      );
      goesOn = false;
      await Promise.all(loads);
      // 404 is "model.not_found", so the token was accepted.
      const accepted = sent.filter(({ status }) => status === 200 || status === 404);
      const after = sent.filter(({ startedAt }) => startedAt >= revokedAt);
      expect(accepted.length).toBeGreaterThan(CONNECTIONS);
      expect(after.filter(({ status }) => status !== 401)).toEqual([]);
      if (LOAD_MS > 10_000) console.info(`${accepted.length} requests accepted before the revocation, ${after.length} refused after it`);
    }
  },
  10 * LOAD_MS + 120_000,
);
