/** What a running service answers, with real slots and a real model server, matches the OpenAPI document and the table of metrics that it publishes. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { METRICS } from '../../src/api/metrics/metric-table.ts';
import { createAnswerChecker, type CheckAnswer } from '../api/openapi/answer-checker.ts';
import { isAnswering, startService, type Service } from '../support/service.ts';

let service: Service;
let check: CheckAnswer;

beforeAll(async () => {
  service = await startService({ runtime: 'process', environment: { HF_ENDPOINT: 'http://127.0.0.1:1' } });
  await service.save('primary', 'backend = "cpu"\n[model]\ndefault = "demo-fox"\n');
  await service.save('embed', 'backend = "cpu"\n[model]\ndefault = "demo-embed"\n');
  await service.save('broken', 'provider = "gguf"\nnothing = 1\n');
  await service.until('primary', 'ready', isAnswering);
  await service.until('embed', 'ready', isAnswering);
  check = createAnswerChecker(await (await fetch(`${service.url}/api/openapi.json`)).json());
}, 120_000);
afterAll(() => service.dispose(), 60_000);

async function problemsOf(method: string, path: string, body?: object, actual = path): Promise<readonly string[]> {
  const response = await fetch(`${service.url}${actual}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  });
  const text = await response.text();
  return check(method, path, { status: response.status, headers: Object.fromEntries(response.headers), text });
}

describe('a running service', () => {
  test.each([
    '/api/health/system',
    '/api/health/ready',
    '/api/status',
    '/api/metrics',
    '/api/features',
    '/api/config/urls',
    '/api/install/state',
    '/api/auth/status',
    '/api/slots',
    '/api/models',
    '/api/pulls',
    '/api/providers',
    '/api/hardware',
    '/api/openapi.json',
    '/v1/models',
  ])('answers GET %s as published', async (path) => {
    expect(await problemsOf('GET', path)).toEqual([]);
  });

  test('answers GET /api/models/search as published, without a Hub', async () => {
    expect(await problemsOf('GET', '/api/models/search', undefined, '/api/models/search?q=qwen')).toEqual([]);
  });

  test.each(['', '/logs', '/timeline', '/explain'])(
    'answers GET /api/slots/{name}%s as published, also for a slot that was never valid',
    async (rest) => {
      for (const name of ['primary', 'broken', 'none']) {
        expect([name, await problemsOf('GET', `/api/slots/{name}${rest}`, undefined, `/api/slots/${name}${rest}`)]).toEqual([name, []]);
      }
    },
  );

  test('answers plans as published', async () => {
    const slots = [{ name: 'primary', spec: { backend: 'cpu', model: { default: 'demo-owl' } } }];
    expect(await problemsOf('POST', '/api/plan', { slots })).toEqual([]);
    expect(await problemsOf('POST', '/api/apply', { slots, dry_run: true })).toEqual([]);
  });

  test('answers inference requests as published', async () => {
    const messages = [{ role: 'user', content: 'Hi' }];
    expect(await problemsOf('POST', '/v1/chat/completions', { messages })).toEqual([]);
    expect(await problemsOf('POST', '/v1/chat/completions', { messages, stream: true })).toEqual([]);
    expect(await problemsOf('POST', '/v1/completions', { prompt: 'Hi' })).toEqual([]);
    expect(await problemsOf('POST', '/v1/embeddings', { input: 'Hi' })).toEqual([]);
    expect(await problemsOf('POST', '/v1/embeddings', { input: 'Hi', model: 'none' })).toEqual([]);
  });

  test('exports the metrics of the table and no others, with the time to first token of the streamed answer only', async () => {
    const text = await (await fetch(`${service.url}/api/metrics`)).text();
    expect(new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name))).toEqual(
      // On a host, usage is in a file.
      new Set(Object.keys(METRICS).filter((name) => !name.startsWith('svc_usage_'))),
    );
    const route = 'slot="primary",route="/v1/chat/completions"';
    expect(text).toContain(`svc_request_seconds_count{${route}} 2`);
    expect(text).toContain(`gen_ai_server_time_to_first_token_seconds_count{${route}} 1`);
    expect(text).toContain('svc_slot_condition{slot="primary",type="Ready",status="True"} 1');
    expect(text).toContain('svc_slot_condition{slot="broken",type="SpecValid",status="False"} 1');
  });
});
