/** What happens to requests of servers that fail, where their slot declares a fallback. */
import { describe, expect, test } from '@jest/globals';
import { DISABLED, slotName } from './support/board-fixture.ts';
import { begin, CHAT, chatBody, errorOf, post, responseOf } from './support/client.ts';
import { closed, open, to, useFallbackGateway, way, when } from './support/fallback-fixture.ts';
import { sendJson, type Answer } from './support/fake-upstream.ts';
import { until } from './support/gateway-fixture.ts';

const MIB = 1024 * 1024;
const { running, upstreams, server, show, ask, counts } = useFallbackGateway();

describe('A server that fails before the first byte', () => {
  test('and is killed loses its requests to a target, before the board says so', async () => {
    const primary = await server(() => undefined);
    show(open('primary', primary, to('b')), open('b', await server()));
    const reply = ask();
    await until(() => primary.seen.length === 1);
    await primary.kill();
    expect(way(await reply)).toEqual([200, 'b', 'upstream.failed; from=primary']);
    // Its port refuses connections now.
    expect(way(await ask())).toEqual([200, 'b', 'upstream.failed; from=primary']);
    expect(running().board.current().slots.get(slotName('primary'))?.admission.kind).toBe('open');
  });

  test('leaves them to another replica of its slot first', async () => {
    const dead = await server();
    const replica = await server();
    await dead.kill();
    const targets = [dead, replica].map(({ port }) => ({ workload: 'w', port }));
    show({ name: 'primary', targets, ...to('b') }, open('b', await server()));
    for (let nth = 0; nth < 4; nth += 1) expect(way(await ask())).toEqual([200, 'primary', undefined]);
    await replica.kill();
    expect(way(await ask())).toEqual([200, 'b', 'upstream.failed; from=primary']);
  });

  test('and whose workload is stopped gives its requests away', async () => {
    const primary = await server(() => undefined);
    show(open('primary', primary, to('b')), open('b', await server()));
    const reply = ask();
    await until(() => primary.seen.length === 1);
    for (const workload of running().traffic.read().workloads.keys()) running().traffic.abort(workload);
    expect(way(await reply)).toEqual([200, 'b', 'upstream.failed; from=primary']);
  });

  test.each([500, 502, 503, 429])('with %i loses the request to a target', async (status) => {
    show(
      open('primary', await server((_request, res) => sendJson(res, status, { error: { message: 'Broken' } })), to('b')),
      open('b', await server()),
    );
    expect(way(await ask())).toEqual([200, 'b', 'upstream.failed; from=primary']);
    expect(counts()).toEqual([1, 1]);
  });

  test('with an answer that is not HTTP loses the request to a target', async () => {
    show(
      open('primary', await server((_request, _res, socket) => void socket.write('nonsense\r\n\r\n')), to('b')),
      open('b', await server()),
    );
    expect(way(await ask())).toEqual([200, 'b', 'upstream.failed; from=primary']);
  });

  test.each([400, 401, 404, 422])('with %i answers the request itself', async (status) => {
    show(
      open('primary', await server((_request, res) => sendJson(res, status, { error: { message: 'Your mistake' } })), to('b')),
      open('b', await server()),
    );
    expect(way(await ask())).toEqual([status, 'primary', undefined]);
    expect(counts()).toEqual([1, 0]);
  });

  test('and has no target that can answer sends its own error', async () => {
    const broken: Answer = (_request, res) => sendJson(res, 500, { error: { message: 'Broken' } });
    show(open('primary', await server(broken), to('b', 'c')), closed('b', DISABLED));
    const alone = await ask();
    expect([...way(alone), errorOf(alone.text).message]).toEqual([500, 'primary', undefined, 'Broken']);
    show(open('primary', await server(broken), to('b', 'c')), open('b', await server(broken)), open('c', await server(broken)));
    const all = await ask();
    expect([...way(all), errorOf(all.text).message]).toEqual([
      500,
      'c',
      'upstream.failed; from=primary, upstream.failed; from=b',
      'Broken',
    ]);
    expect(counts()).toEqual([1, 1, 1, 1]);
  });

  test('is tried again as without a fallback, where "upstream.failed" is not named', async () => {
    const primary = await server(() => undefined);
    show(open('primary', primary, when('stalled')), open('b', await server()));
    const reply = ask();
    await until(() => primary.seen.length === 1);
    await primary.kill();
    const next = await server();
    show({ name: 'primary', targets: [{ workload: 'next', port: next.port }], ...when('stalled') });
    expect(way(await reply)).toEqual([200, 'primary', undefined]);
  });

  test('does not hand a request on that has killed three servers', async () => {
    const dying: Answer = (_request, _res, socket) => void socket.destroy();
    const [a, b, c, d] = [await server(dying), await server(dying), await server(dying), await server(dying)];
    show(open('primary', a, to('b', 'c', 'd')), open('b', b), open('c', c), open('d', d));
    const reply = await ask();
    expect([reply.status, errorOf(reply.text).code]).toEqual([502, 'upstream.failed']);
    expect(counts()).toEqual([1, 1, 1, 0]);
  });
});

describe('A request', () => {
  test('whose answer has begun goes nowhere else', async () => {
    const cut: Answer = (_request, res, socket) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write('data: 1\n\n', () => socket.destroy());
    };
    show(open('primary', await server(cut), to('b')), open('b', await server()));
    const reply = await ask({ stream: true });
    expect(way(reply)).toEqual([200, 'primary', undefined]);
    expect(reply.text).toMatch(/^data: 1\n\ndata: \{"error"/);
    expect(counts()).toEqual([1, 0]);
  });

  test('whose body cannot be sent again goes nowhere else', async () => {
    const leaving = await server(undefined, { onRequest: (req) => void req.once('data', () => req.socket.destroy()) });
    show(open('primary', leaving, to('b')), open('b', await server()));
    const body = chatBody({ pad: 'x'.repeat(3 * MIB) });
    const req = begin(running().port, CHAT, { 'content-length': body.length });
    req.write(body.slice(0, 2 * MIB));
    const res = await responseOf(req);
    expect([res.statusCode, res.headers['x-svc-slot']]).toEqual([502, 'primary']);
    req.destroy();
    expect(counts()).toEqual([0, 0]);
  });

  test('with a large body arrives whole at a target', async () => {
    show(closed('primary', DISABLED, to('b')), open('b', await server()));
    const body = chatBody({ pad: 'x'.repeat(3 * MIB) });
    expect(way(await post(running().port, CHAT, body))).toEqual([200, 'b', 'stalled; from=primary']);
    expect(upstreams[0]?.seen[0]?.body.equals(Buffer.from(body))).toBe(true);
  });

  test('with a preset keeps it at a target', async () => {
    const presets = { cold: { force: { temperature: 0 } } };
    show(closed('primary', DISABLED, { ...to('b'), presets }), open('b', await server()));
    expect(way(await ask({ model: 'primary:cold' }))).toEqual([200, 'b', 'stalled; from=primary']);
    expect(upstreams[0]?.seen[0]?.body.toString()).toMatch(/,"temperature":0\}$/);
  });
});
