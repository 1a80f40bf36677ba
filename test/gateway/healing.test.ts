import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { DISABLED, PARK, publish, slotName } from './support/board-fixture.ts';
import { begin, CHAT, chatBody, errorOf, post, responseOf, type Reply } from './support/client.ts';
import { sendJson, startUpstream, type FakeUpstream, type UpstreamOptions } from './support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from './support/gateway-fixture.ts';

const PRIMARY = slotName('primary');
let gateway: GatewayFixture;
const upstreams: FakeUpstream[] = [];

async function upstreamOf(options: UpstreamOptions = {}): Promise<FakeUpstream> {
  const upstream = await startUpstream(options);
  upstreams.push(upstream);
  return upstream;
}

function serve(workload: string, upstream: { readonly port: number }): void {
  publish(gateway.board, { name: 'primary', targets: [{ workload, port: upstream.port }] });
}

const parked = (): number => gateway.traffic.ofSlot(PRIMARY).parked;
const textOf = (reply: Reply): string => JSON.parse(reply.text).choices[0].message.content;

async function start(settings: Record<string, string> = {}): Promise<void> {
  gateway = await startGateway({ settings });
}

beforeEach(() => expect.hasAssertions());
afterEach(async () => {
  expect(gateway.faults).toEqual([]);
  await gateway.close();
  for (const upstream of upstreams.splice(0)) await upstream.kill();
  await until(() => gateway.gateway.load().connections === 0);
  expect(gateway.gateway.load()).toEqual({ requests: 0, bufferedBytes: 0, spooledBytes: 0, connections: 0 });
  expect(gateway.traffic.ofSlot(PRIMARY)).toEqual({ inFlight: 0, parked: 0 });
});

describe('a request whose workload has died', () => {
  test('waits for the new workload when nothing accepts its connection', async () => {
    await start();
    const dead = await startUpstream();
    await dead.kill();
    serve('dead', dead);
    const reply = post(gateway.port, CHAT, chatBody());
    await until(() => parked() === 1);
    const healed = await upstreamOf({ text: 'healed' });
    serve('healed', healed);
    expect(textOf(await reply)).toBe('healed');
    expect(healed.seen.length).toBe(1);
  });

  test('is sent again when the workload dies while it processes the request', async () => {
    await start();
    const dying = await startUpstream({ answer: () => undefined });
    serve('dying', dying);
    const reply = post(gateway.port, CHAT, chatBody());
    await until(() => dying.seen.length === 1);
    await dying.kill();
    await until(() => parked() === 1);
    publish(gateway.board, { name: 'primary', admission: PARK });
    const healed = await upstreamOf({ text: 'healed' });
    serve('healed', healed);
    expect(textOf(await reply)).toBe('healed');
    expect(gateway.finished.length).toBe(1);
  });

  test('is retried on the same workload when the failure was temporary', async () => {
    await start();
    const first = await startUpstream({ answer: () => undefined });
    serve('w', first);
    const reply = post(gateway.port, CHAT, chatBody());
    await until(() => first.seen.length === 1);
    await first.kill();
    await upstreamOf({ text: 'back', port: first.port });
    expect(textOf(await reply)).toBe('back');
  });

  test('wakes the reconciler', async () => {
    await start();
    const wakes: unknown[] = [];
    gateway.traffic.changes((withinMs) => void wakes.push(withinMs), new AbortController().signal);
    const dead = await startUpstream();
    await dead.kill();
    serve('dead', dead);
    const req = begin(gateway.port, CHAT, { 'content-length': chatBody().length });
    req.end(chatBody());
    await until(() => parked() === 1);
    expect(wakes).toContain(0);
    req.destroy();
    await until(() => parked() === 0);
  });

  test('is given up with slot.loading when the slot does not recover in time', async () => {
    await start({ SVC_PARK_TIMEOUT: '150ms' });
    const dead = await startUpstream();
    await dead.kill();
    serve('dead', dead);
    const reply = await post(gateway.port, CHAT, chatBody());
    expect([reply.status, errorOf(reply.text).code]).toEqual([503, 'slot.loading']);
  });

  test('is refused with the reason when the slot cannot recover', async () => {
    await start();
    const dead = await startUpstream();
    await dead.kill();
    serve('dead', dead);
    const reply = post(gateway.port, CHAT, chatBody());
    await until(() => parked() === 1);
    publish(gateway.board, { name: 'primary', admission: DISABLED });
    expect(errorOf((await reply).text).code).toBe('slot.disabled');
  });

  test('waits for a model that is still loading behind an open slot', async () => {
    await start();
    let loading = true;
    const upstream = await upstreamOf({
      answer: (_request, res) => {
        if (loading) sendJson(res, 503, { error: { message: 'Loading model', type: 'unavailable_error', code: 503 } });
        else sendJson(res, 200, { ok: true });
      },
    });
    serve('w', upstream);
    const reply = post(gateway.port, CHAT, chatBody());
    await until(() => upstream.seen.length >= 2);
    loading = false;
    expect((await reply).text).toBe('{"ok":true}');
  });

  test('with a large body is sent again as long as only the buffered part was read', async () => {
    await start();
    const dead = await startUpstream();
    await dead.kill();
    serve('dead', dead);
    const body = chatBody({ pad: 'x'.repeat(4 * 1024 * 1024) });
    const reply = post(gateway.port, CHAT, body);
    await until(() => parked() === 1);
    const healed = await upstreamOf();
    serve('healed', healed);
    expect((await reply).status).toBe(200);
    expect(healed.seen[0]?.body.length).toBe(body.length);
  });

  test('with a large body that has already flowed to the upstream fails', async () => {
    await start();
    let flowed = 0;
    const dying = await upstreamOf({
      onRequest: (req) => {
        req.on('data', (part: Buffer) => {
          flowed += part.length;
          if (flowed > 2 * 1024 * 1024) req.socket.resetAndDestroy();
        });
      },
    });
    serve('dying', dying);
    const reply = await post(gateway.port, CHAT, chatBody({ pad: 'x'.repeat(8 * 1024 * 1024) }));
    expect([reply.status, errorOf(reply.text).code]).toEqual([502, 'upstream.failed']);
  });
});

describe('connections to an upstream', () => {
  test('are reused', async () => {
    await start();
    const upstream = await upstreamOf();
    serve('w', upstream);
    for (let round = 0; round < 20; round += 1) await post(gateway.port, CHAT, chatBody());
    expect([upstream.seen.length, upstream.accepted()]).toEqual([20, 1]);
  });

  test.each([1, 3, 100])(
    'lose no request when the upstream closes each after %s requests without notice',
    async (requestsPerConnection) => {
      await start();
      const upstream = await upstreamOf({ requestsPerConnection });
      serve('w', upstream);
      const clients = Array.from({ length: 8 }, async () => {
        const statuses: number[] = [];
        for (let round = 0; round < 60; round += 1) statuses.push((await post(gateway.port, CHAT, chatBody())).status);
        return statuses;
      });
      const statuses = (await Promise.all(clients)).flat();
      expect(statuses.filter((status) => status !== 200)).toEqual([]);
      expect(statuses.length).toBe(480);
      expect(upstream.seen.length).toBe(480);
    },
  );

  test('lose no request when the upstream closes idle ones just as the next request arrives', async () => {
    await start();
    const upstream = await upstreamOf({ keepAliveMs: 1 });
    serve('w', upstream);
    const failures: number[] = [];
    for (let round = 0; round < 120; round += 1) {
      const reply = await post(gateway.port, CHAT, chatBody());
      if (reply.status !== 200) failures.push(reply.status);
      await new Promise((resolve) => setTimeout(resolve, round % 8));
    }
    expect(failures).toEqual([]);
  });

  test('close at once when the upstream asks for it', async () => {
    await start();
    const upstream = await upstreamOf({
      answer: (_request, res) => {
        res.setHeader('connection', 'close');
        sendJson(res, 200, {});
      },
    });
    serve('w', upstream);
    for (let round = 0; round < 5; round += 1) {
      await post(gateway.port, CHAT, chatBody());
      await someTurns();
      expect(gateway.gateway.load().connections).toBe(0);
    }
    expect(upstream.accepted()).toBe(5);
  });

  test('close at once when they are idle and their target leaves the board', async () => {
    await start();
    const upstream = await upstreamOf();
    serve('w', upstream);
    await post(gateway.port, CHAT, chatBody());
    await someTurns();
    expect(gateway.gateway.load().connections).toBe(1);
    publish(gateway.board, { name: 'primary', admission: PARK });
    await someTurns();
    expect(gateway.gateway.load().connections).toBe(0);
  });

  test('close when their target leaves the board, but not during a request', async () => {
    await start();
    let finish = (): void => undefined;
    const upstream = await upstreamOf({
      answer: (_request, res) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' });
        res.write('data: 1\n\n');
        finish = () => void res.end('data: [DONE]\n\n');
      },
    });
    serve('w', upstream);
    const req = begin(gateway.port, CHAT, { 'content-length': chatBody().length });
    req.end(chatBody());
    const res = await responseOf(req);
    publish(gateway.board, { name: 'primary', admission: PARK });
    let text = '';
    res.on('data', (part: Buffer) => (text += part.toString()));
    finish();
    await until(() => text.endsWith('[DONE]\n\n'));
    await until(() => gateway.gateway.load().connections === 0);
    expect(text).toBe('data: 1\n\ndata: [DONE]\n\n');
  });
});

/** A few turns of the event loop, far less time than an idle connection is kept. */
async function someTurns(): Promise<void> {
  for (let count = 0; count < 50; count += 1) await new Promise((resolve) => setImmediate(resolve));
}
