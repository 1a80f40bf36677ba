/** Usage from a server that answers as Prometheus does. */
import { createServer, type Server } from 'node:http';
import { afterEach, expect, test } from '@jest/globals';
import { METRICS } from '../../src/api/metrics/metric-table.ts';
import type { Grouping } from '../../src/usage/decide/usage-rows.ts';
import { createPrometheusUsage, SOURCES } from '../../src/usage/prometheus-usage.ts';

const HOUR = 3600;
type Answer = (query: string, url: URL) => { readonly status?: number; readonly body: unknown };

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function startPrometheus(answer: Answer) {
  const asked: URL[] = [];
  const server = createServer((req, res) => {
    const url = new URL(req.url ?? '', 'http://prometheus');
    asked.push(url);
    const { status = 200, body } = answer(url.searchParams.get('query') ?? '', url);
    res.writeHead(status, { 'content-type': 'application/json' }).end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return { asked, url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/` };
}

const success = (result: readonly object[]) => ({ body: { status: 'success', data: { resultType: 'vector', result } } });
const ask = async (url: string, by: readonly Grouping[], range = { from: 100, to: 148 }) =>
  await createPrometheusUsage(url, 'ai').query({ ...range, by, most: 100 });

test('sums of callers and slots come from the increase of the metrics in the range', async () => {
  const { url, asked } = await startPrometheus((query) => {
    const series = (metric: object, value: string) => ({ metric, value: [148 * HOUR, value] });
    const of = { caller: 'token:a', slot: 'primary' };
    if (query.includes('requests_total{')) return query.includes('estimated') ? success([]) : success([series(of, '2.99')]);
    if (query.includes('tokens_total'))
      return success([
        series({ ...of, kind: 'input' }, '30'),
        series({ ...of, kind: 'cached' }, '10'),
        series({ ...of, kind: 'output' }, '5'),
      ]);
    if (query.includes('seconds_total')) return success([series({ ...of, kind: 'busy' }, '1.5'), series({ ...of, kind: 'other' }, '9')]);
    if (query.includes('loads_total')) return success([series(of, '2')]);
    if (query.includes('evictions_total')) return success([series(of, '1.02')]);
    if (query.includes('cost_total')) return success([series({ ...of, currency: 'EUR' }, '0.25'), series(of, 'NaN')]);
    return success([]);
  });
  const { sums, problem } = await ask(url, ['token', 'slot']);
  expect(problem).toBeUndefined();
  expect(sums).toMatchObject([
    {
      caller: 'token:a',
      slot: 'primary',
      currency: '',
      requests: 3,
      input: 30,
      cached: 10,
      output: 5,
      busyMs: 1500,
      nanos: 0,
      loads: 2,
      evictions: 1,
    },
    { caller: 'token:a', slot: 'primary', currency: 'EUR', requests: 0, nanos: 250_000_000 },
  ]);
  expect(asked[0]?.pathname).toBe('/api/v1/query');
  expect(asked.map(({ searchParams }) => searchParams.get('query'))).toContain(
    'sum by (kind, currency, caller, slot) (increase(svc_usage_tokens_total{namespace="ai"}[48h]))',
  );
  expect(asked[0]?.searchParams.get('time')).toBe(String(148 * HOUR));
});

test('each metric of usage is read, and no other', () => {
  const ofUsage = Object.keys(METRICS).filter((name) => name.startsWith('svc_usage_'));
  expect(SOURCES.map(({ metric }) => metric).toSorted()).toEqual(ofUsage.toSorted());
});

test.each([
  [['hour'], { from: 100, to: 102 }, [101, 102], [100, 101]],
  [['day'], { from: 100, to: 140 }, [120, 144], [96, 120]],
] as const)('sums by %j have the time at which each begins', async (by, range, ends, hours) => {
  const { url, asked } = await startPrometheus((query) =>
    query.includes('images') ? success([{ metric: {}, values: ends.map((end) => [end * HOUR, '4']) }]) : success([]),
  );
  const { sums } = await ask(url, by, range);
  expect(sums.map(({ hour, images }) => [hour, images])).toEqual(hours.map((hour) => [hour, 4]));
  const { searchParams } = asked[0] ?? new URL('http://none');
  expect([searchParams.get('start'), searchParams.get('end')]).toEqual([String(ends[0] * HOUR), String(ends[1] * HOUR)]);
});

test.each([
  ['refuses', { status: 400, body: { status: 'error', errorType: 'bad_data', error: 'range is too long' } }, 'range is too long'],
  ['refuses at length', { status: 422, body: { status: 'error', error: 'x'.repeat(100_000) } }, `${'x'.repeat(290)}`],
  ['is something else', { body: '<html>' }, 'status 200 has an unknown form'],
  ['wants a password', { status: 401, body: 'Unauthorized' }, 'status 401 has an unknown form'],
  ['has a huge answer', { body: ' '.repeat(9 * 1024 * 1024) }, 'larger than'],
  ['has series of something else', { body: { status: 'success', data: { result: [{ metric: {}, values: [['x', 1]] }] } } }, 'unknown form'],
  ['answers something else', { body: { status: 'success', data: {} } }, 'unknown form'],
])('a server that %s is a problem in the answer', async (_what, answer, why) => {
  const { url } = await startPrometheus(() => answer);
  const { sums, problem = '' } = await ask(url, ['token']);
  expect([sums, problem]).toEqual([[], expect.stringContaining(why)]);
  expect(problem.length).toBeLessThan(400);
});

test('a server that does not answer, or not to the end, is waited for for a limited time', async () => {
  for (const begin of [undefined, '{"status":"success"']) {
    const server = createServer((_, res) => (begin === undefined ? undefined : res.write(begin)));
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = Object(server.address());
    const usage = createPrometheusUsage(`http://127.0.0.1:${port}`, undefined, 300);
    const { sums, problem } = await usage.query({ from: 1, to: 2, by: ['token'], most: 10 });
    expect([sums, problem]).toEqual([[], expect.stringContaining('did not answer within 0.3 s')]);
    server.closeAllConnections();
  }
});

test('numbers that cannot be, and samples of other times, are left out', async () => {
  const values = [
    [101 * HOUR, '1e300'],
    [102 * HOUR, '-5'],
    [102 * HOUR, 'NaN'],
    [102 * HOUR, 'many'],
    [50 * HOUR, '5'],
    [1e300, '5'],
  ];
  const { url } = await startPrometheus((query) =>
    query.includes('tokens')
      ? success(['output', 'constructor', '__proto__'].map((kind) => ({ metric: { kind, caller: 'a' }, values })))
      : success([]),
  );
  const { sums, problem } = await ask(url, ['hour', 'token'], { from: 100, to: 102 });
  expect(problem).toBeUndefined();
  expect(sums).toMatchObject([{ hour: 100, caller: 'a', output: Number.MAX_SAFE_INTEGER, input: 0 }]);
  expect(sums).toHaveLength(1);
});

test('a server that is not there is a problem in the answer, and so is a question for models', async () => {
  const { url } = await startPrometheus(() => success([]));
  servers.splice(0)[0]?.close();
  expect(await ask(url, ['token'])).toEqual({ sums: [], problem: expect.stringMatching(/SVC_PROMETHEUS_URL.*ECONNREFUSED/) });
  expect(await ask(url, ['token', 'model'])).toEqual({ sums: [], problem: expect.stringContaining('no models') });
});
