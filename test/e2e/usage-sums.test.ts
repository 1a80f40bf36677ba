/**
 * Many mixed requests, over kills of the service: what it has counted is what its upstream has, but for what ended or
 * was in flight since it was last asked. `SVC_TEST_REQUESTS=100000` sends more (`npm run test:long -- usage`).
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startCounting, type Counted } from '../support/counting-server.ts';
import { eventually } from '../support/eventually.ts';
import { isAnswering, startService, type Service } from '../support/service.ts';

const REQUESTS = Number(process.env['SVC_TEST_REQUESTS'] ?? 2000);
const KILLS = 4;
const CLIENTS = 32;
const MOST_TOKENS = 17;

let service: Service;
let upstream: Awaited<ReturnType<typeof startCounting>>;
beforeAll(async () => {
  upstream = await startCounting();
  service = await startService({ runtime: 'process' });
  const remote = (port: number): string => `[remote]\nurl = "http://127.0.0.1:${port}/v1"\nprivate = true\n`;
  const counting = 'provider = "remote"\n[model]\ndefault = "counting"\n';
  await service.save('primary', `${counting}${remote(upstream.port)}`);
  // What clients leave is counted by events, so it has a slot of its own.
  await service.save('left', `${counting}${remote(upstream.port)}`);
  // Port 9 discards: nobody listens there.
  await service.save('away', `${counting}${remote(9)}[fallback]\nto = ["primary"]\nwhen = ["stalled", "loading > 1s"]\n`);
  await service.until('primary', 'ready', isAnswering);
  await service.until('left', 'ready', isAnswering);
}, 120_000);
afterAll(async () => {
  await service.dispose();
  upstream.server.closeAllConnections();
  upstream.server.close();
}, 60_000);

const read = async (slot = 'primary'): Promise<Record<string, number>> => {
  const { usage, problem } = JSON.parse(await (await fetch(`${service.url}/api/usage?by=slot`)).text());
  expect(problem).toBeNull();
  return usage.find((sum: { slot: string }) => sum.slot === slot) ?? {};
};

async function send(number: number): Promise<'answered' | 'failed' | 'lost'> {
  const n = 1 + (number % MOST_TOKENS);
  const ask = async (content: string, more: object, signal?: AbortSignal): Promise<Response> =>
    await service.chat({ model: 'primary', messages: [{ role: 'user', content }], ...more }, signal);
  try {
    switch (number % 10) {
      case 0: {
        const leaving = new AbortController();
        const answer = await ask(`hang ${n}`, { model: 'left', stream: true }, leaving.signal);
        await answer.body?.getReader().read();
        leaving.abort();
        return 'failed';
      }
      case 1:
        await (await ask(`fail ${n}`, {})).text();
        return 'failed';
      case 2:
        await (await ask(`loading ${number}`, {})).text();
        return 'answered';
      case 3:
        await (await ask(`say ${n}`, { model: 'away' })).text();
        return 'answered';
      case 4:
      case 5:
        await (await ask(`say ${n}`, { stream: true, stream_options: { include_usage: true } })).text();
        return 'answered';
      case 6:
      case 7:
        await (await ask(`say ${n}`, { stream: true })).text();
        return 'answered';
      default:
        await (await ask(`say ${n}`, {})).text();
        return 'answered';
    }
  } catch {
    return 'lost';
  }
}

const NONE: Counted = { requests: 0, input: 0, cached: 0, output: 0 };
/** Negative: what the upstream had counted, and the service perhaps had not, when a kill began. */
const IN_FLIGHT: Counted = {
  requests: -CLIENTS,
  input: -CLIENTS * MOST_TOKENS * 10,
  cached: -CLIENTS * MOST_TOKENS * 4,
  output: -CLIENTS * MOST_TOKENS,
};
const less = (left: Counted, right: Counted): Counted => ({
  requests: left.requests - right.requests,
  input: left.input - right.input,
  cached: left.cached - right.cached,
  output: left.output - right.output,
});

test(`${REQUESTS} requests, ${KILLS} kills`, async () => {
  let next = 0;
  let isDown = false;
  const outcomes = { answered: 0, failed: 0, lost: 0 };
  const client = async (): Promise<void> => {
    while (next < REQUESTS) {
      if (isDown) {
        await new Promise((resolve) => setTimeout(resolve, 20));
        continue;
      }
      outcomes[await send((next += 1))] += 1;
    }
  };
  const clients = Promise.all(Array.from({ length: CLIENTS }, client));
  /** Most that the kills may have taken. */
  let unsure: Counted = NONE;
  for (let kill = 1; kill <= KILLS; kill += 1) {
    await eventually('a share of the requests was sent', () => next >= (REQUESTS * kill) / (KILLS + 1), 600_000);
    const before = { ...upstream.counted };
    // This writes what has ended.
    await read();
    isDown = true;
    await service.kill('SIGKILL');
    unsure = less(less(unsure, IN_FLIGHT), less(before, upstream.counted));
    await service.start();
    await service.until('primary', 'ready', isAnswering);
    await service.until('left', 'ready', isAnswering);
    isDown = false;
  }
  await clients;
  await eventually('all requests have ended', async () => {
    const seen = await read();
    await new Promise((resolve) => setTimeout(resolve, 500));
    return seen['requests'] === (await read())['requests'];
  });
  const { requests = 0, errors = 0, input_tokens = 0, cached_tokens = 0, output_tokens = 0 } = await read();
  const stored: Counted = { requests: requests - errors, input: input_tokens, cached: cached_tokens, output: output_tokens };
  const missing = less(upstream.counted, stored);
  process.stdout.write(`${JSON.stringify({ ...outcomes, counted: upstream.counted, missing, unsure, left: await read('left') })}\n`);
  for (const key of ['requests', 'input', 'cached', 'output'] as const) {
    expect([key, missing[key] >= 0, missing[key] <= unsure[key]]).toEqual([key, true, true]);
  }
  // The bound says little if the kills may have taken much.
  expect(unsure.requests).toBeLessThan(upstream.counted.requests / 5);
  expect((await read('left'))['estimated_requests']).toBeGreaterThan(0);
}, 1_800_000);
