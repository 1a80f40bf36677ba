/** Usage of a real service adds up to what its upstream has counted itself, also over a kill. */
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startCounting } from '../support/counting-server.ts';
import { eventually } from '../support/eventually.ts';
import { isAnswering, startService, type Service } from '../support/service.ts';
import { svcctl } from '../cli/run-svcctl.ts';

describe.each([
  ['one process', '1'],
  ['two processes', '2'],
])('with %s', (_what, workers) => {
  let service: Service;
  let upstream: Awaited<ReturnType<typeof startCounting>>;
  const slotText = (): string =>
    `provider = "remote"\n[model]\ndefault = "counting"\n[remote]\nurl = "http://127.0.0.1:${upstream.port}/v1"\nprivate = true\n`;
  beforeAll(async () => {
    upstream = await startCounting();
    service = await startService({ runtime: 'process', environment: { SVC_WORKERS: workers } });
    await service.save('primary', slotText());
    await service.until('primary', 'ready', isAnswering);
  }, 120_000);
  afterAll(async () => {
    await service.dispose();
    upstream.server.closeAllConnections();
    upstream.server.close();
  }, 60_000);

  const price = async (currency: string, prompt: number): Promise<void> => {
    const prices = `currency = "${currency}"\nprompt_tokens = ${prompt}\ncached_tokens = 100\noutput_tokens = ${2 * prompt}\n`;
    await service.save('primary', `${slotText()}[price]\n${prices}`);
    await service.until('primary', 'priced', (slot) => {
      const { spec, status, generation } = Object(slot);
      const isApplied =
        spec?.price?.currency === currency && spec.price.prompt_tokens === prompt && status.observed_generation === generation;
      return isApplied && isAnswering(slot);
    });
  };
  const ask = async (content: string, more: object = {}, signal?: AbortSignal): Promise<Response> =>
    await service.chat({ model: 'primary', messages: [{ role: 'user', content }], ...more }, signal);
  const read = async (): Promise<Record<string, number>> => {
    const answer = JSON.parse(await (await fetch(`${service.url}/api/usage?by=slot`)).text());
    expect(answer.problem).toBeNull();
    return answer.usage.find(({ slot }: { slot: string }) => slot === 'primary') ?? {};
  };
  /** What the file has, without the service. */
  const stored = (): number => {
    const database = new DatabaseSync(path.join(service.environment['SVC_STATE_DIR'] ?? '', 'usage.sqlite'), { readOnly: true });
    try {
      return Number(database.prepare('SELECT TOTAL(requests) AS sum FROM hours').get()?.['sum']);
    } finally {
      database.close();
    }
  };

  async function mix(): Promise<{ readonly sent: number; readonly failed: number }> {
    const streams = { stream: true };
    const counted = { stream: true, stream_options: { include_usage: true } };
    const all: Promise<Response>[] = [];
    for (let n = 1; n <= 20; n += 1) all.push(ask(`say ${n}`), ask(`say ${n}`, streams), ask(`say ${n}`, counted), ask(`fail ${n}`));
    const texts = await Promise.all(all.map(async (each) => [(await each).status, await (await each).text()] as const));
    expect(texts.filter(([status]) => status === 200)).toHaveLength(60);
    // Sent again by the gateway until it is answered.
    expect((await ask(`loading ${upstream.counted.requests}`)).status).toBe(200);
    return { sent: all.length + 1, failed: 20 };
  }

  test('sums equal what the upstream has counted, and a kill loses only what was in flight', async () => {
    const first = await mix();
    const { requests, input, cached, output } = upstream.counted;
    await eventually('all are counted', async () => (await read())['requests'] === first.sent);
    const before = await read();
    expect(before).toMatchObject({ errors: first.failed, input_tokens: input, cached_tokens: cached, output_tokens: output });
    expect(requests).toBe(first.sent - first.failed);

    // A client that leaves in the middle: its events are counted, and it is said that they are an estimate.
    const gone = new AbortController();
    const left = await ask('hang 30', { stream: true }, gone.signal);
    await left.body?.getReader().read();
    gone.abort();
    await eventually('it is counted', async () => (await read())['requests'] === first.sent + 1);
    const guessed = await read();
    expect(guessed).toMatchObject({ estimated_requests: 1, input_tokens: input });
    expect(Number(guessed['output_tokens']) - output).toBeGreaterThan(0);

    const second = await mix();
    const total = first.sent + 1 + second.sent;
    // Not asked for through the API, which would write what is pending.
    await eventually('all are stored', () => stored() === total);
    const cut = ask('hang 5', { stream: true })
      .then(async (answer) => await answer.text())
      .catch(() => undefined);
    await eventually('it is in flight', () => upstream.open() === 2);
    await service.kill('SIGKILL');
    await cut;
    await service.start();
    await service.until('primary', 'ready', isAnswering);
    const after = await read();
    expect(after).toMatchObject({ requests: total, estimated_requests: 1, input_tokens: upstream.counted.input });
    await mix();
    await eventually('all are counted', async () => (await read())['requests'] === total + second.sent);
    expect(await read()).toMatchObject({ input_tokens: upstream.counted.input, cached_tokens: upstream.counted.cached });
    expect(Number((await read())['output_tokens'])).toBe(upstream.counted.output + Number(guessed['output_tokens']) - output);
  }, 120_000);

  test('a price makes a bill of what the upstream has counted, and an edit of it changes no earlier bill', async () => {
    const costs = async (): Promise<unknown> => (await read())['cost'];
    expect(await costs()).toEqual([]);
    await price('EUR', 1000);
    const before = { ...upstream.counted };
    await mix();
    const { input, cached, output } = upstream.counted;
    const [paid, reused, made] = [input - before.input, cached - before.cached, output - before.output];
    const eur = { currency: 'EUR', amount: ((paid - reused) * 1000 + reused * 100 + made * 2000) / 1e6 };
    await eventually('the bill is complete', async () => JSON.stringify(await costs()) === JSON.stringify([eur]));
    await price('EUR', 4000);
    expect(await costs()).toEqual([eur]);
    await price('USD', 4000);
    await (await ask('say 3')).text();
    const usd = { currency: 'USD', amount: (18 * 4000 + 12 * 100 + 3 * 8000) / 1e6 };
    await eventually('the dollars are counted apart', async () => JSON.stringify(await costs()) === JSON.stringify([eur, usd]));
  }, 60_000);

  test('the file is readable by the service alone, and nothing of a request is in it', async () => {
    const file = path.join(service.environment['SVC_STATE_DIR'] ?? '', 'usage.sqlite');
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const before = stored();
    await (await ask('say 1 nobodyshouldknow')).text();
    await eventually('it is stored', () => stored() === before + 1);
    const database = new DatabaseSync(file, { readOnly: true });
    const text = JSON.stringify(database.prepare('SELECT * FROM hours').all());
    database.close();
    expect(text).toContain('counting');
    expect(text).not.toContain('nobody');
  });

  test('svcctl prints it, and no terminal sees a warning of Node', async () => {
    const env = { SVCCTL_SERVER: service.url };
    const table = await svcctl(['usage', '--by', 'token,slot', '--since', '1d'], { env });
    expect(table).toMatchObject({ code: 0, err: '' });
    expect(table.out).toMatch(
      /^CALLER +SLOT +REQUESTS +ERRORS +INPUT +CACHED +OUTPUT +BUSY +COST\n.*\banyone +primary +\d+ +80 +~\d+ +\d+ +~\d+ +\S+ +~\d+\.\d\d EUR/s,
    );
    expect(service.output()).not.toMatch(/ExperimentalWarning|SQLite/);
  });
});

test('with SVC_USAGE=off nothing is counted and there is no file', async () => {
  const service = await startService({ runtime: 'process', environment: { SVC_USAGE: 'off' } });
  try {
    await service.chat();
    const answer = JSON.parse(await (await fetch(`${service.url}/api/usage`)).text());
    expect(answer).toMatchObject({ usage: [], problem: expect.stringContaining('SVC_USAGE') });
    await expect(stat(path.join(service.environment['SVC_STATE_DIR'] ?? '', 'usage.sqlite'))).rejects.toThrow('ENOENT');
  } finally {
    await service.dispose();
  }
}, 60_000);
