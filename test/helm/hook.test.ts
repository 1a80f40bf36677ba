/** Tests the program that "helm test" runs, against servers that answer like a gateway and like something else. */
import { execFile } from 'node:child_process';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { freePort } from '../support/free-port.ts';

const PROGRAM = join(import.meta.dirname, '../../helm/svc/files/test-gateway.mjs');

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function runAgainst(url: string, patienceMs: number): Promise<Outcome> {
  const env = { PATH: process.env['PATH'], GATEWAY_URL: url, PATIENCE_MS: String(patienceMs) };
  return promisify(execFile)(process.execPath, [PROGRAM], { env }).then(
    (output) => ({ code: 0, ...output }),
    ({ code, stdout, stderr }: Outcome) => ({ code, stdout, stderr }),
  );
}

/** Runs the program against a server that answers with the next of the given answers, and then always with the last one. */
async function outcomeOf(
  answers: Readonly<Record<string, readonly (readonly [status: number, body: string])[]>>,
  patienceMs = 0,
): Promise<Outcome> {
  const served = new Map<string, number>();
  const answer: RequestListener = ({ url = '' }, response) => {
    const given = answers[url] ?? [[404, '{}']];
    const turn = served.get(url) ?? 0;
    served.set(url, turn + 1);
    const [status, body] = given[Math.min(turn, given.length - 1)] ?? [404, '{}'];
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  };
  const server = createServer(answer);
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const address: AddressInfo | string | null = server.address();
  try {
    return await runAgainst(`http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`, patienceMs);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => void server.close(resolve));
  }
}

const READY = [200, '{"status":"ok"}'] as const;
const MODELS = [200, '{"object":"list","data":[{"id":"a"},{"id":"b"}]}'] as const;

test('passes with a gateway that is ready and lists its models', async () => {
  expect(await outcomeOf({ '/api/health/ready': [READY], '/v1/models': [MODELS] })).toEqual({
    code: 0,
    stdout: 'The gateway is ready\nThe gateway lists 2 models\n',
    stderr: '',
  });
});

test('passes with a gateway that asks for a token', async () => {
  const refusal = [401, '{"error":{"code":"auth.required"}}'] as const;
  const { code, stdout } = await outcomeOf({ '/api/health/ready': [READY], '/v1/models': [refusal] });
  expect([code, stdout]).toEqual([0, 'The gateway is ready\nThe gateway lists its models only to clients with a token\n']);
});

test('waits for a gateway that starts', async () => {
  const starting = [503, '{"status":"starting"}'] as const;
  const { code } = await outcomeOf({ '/api/health/ready': [starting, READY], '/v1/models': [MODELS] }, 60_000);
  expect(code).toBe(0);
});

test.each([
  ['a gateway that does not become ready', { '/api/health/ready': [[503, '{"status":"starting"}']] }, 'status 503, {"status":"starting"}'],
  ['a server that is no gateway', { '/api/health/ready': [READY], '/v1/models': [[200, '<html>']] }, 'is not valid JSON'],
  ['a server that lists nothing', { '/api/health/ready': [READY], '/v1/models': [[200, '{}']] }, 'status 200, {}'],
  ['a proxy that asks for a password', { '/api/health/ready': [READY], '/v1/models': [[401, '{}']] }, 'status 401, {}'],
] as const)('fails with %s, and says what was wrong', async (_what, answers, problem) => {
  const { code, stderr } = await outcomeOf(answers);
  expect(code).toBe(1);
  expect(stderr).toContain('Look at the pods of the gateway');
  expect(stderr).toContain(problem);
});

test('fails if nothing answers', async () => {
  const { code, stderr } = await runAgainst(`http://127.0.0.1:${await freePort()}`, 0);
  expect([code, stderr]).toEqual([1, expect.stringContaining('fetch failed: connect ECONNREFUSED')]);
});
