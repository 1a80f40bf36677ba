/** Where requests of a slot that declares a fallback go, and what they are told. */
import { afterEach, describe, expect, test } from '@jest/globals';
import { DISABLED, PARK, publish, slotName, type SlotSketch } from './support/board-fixture.ts';
import { begin, CHAT, chatBody, errorOf, post } from './support/client.ts';
import { closed, open, to, useFallbackGateway, way, when } from './support/fallback-fixture.ts';
import { sendJson, type Answer } from './support/fake-upstream.ts';
import { startGateway, until } from './support/gateway-fixture.ts';

const { running, upstreams, server, show, ask, waiting, counts } = useFallbackGateway();

describe('A slot that refuses requests', () => {
  test.each(['slot.disabled', 'slot.stalled', 'slot.insufficient_memory', 'slot.loading'] as const)(
    'with "%s" gives them to the first target that is open',
    async (code) => {
      show(closed('primary', { kind: 'refuse', code, message: 'No' }, to('c', 'b')), closed('c', PARK), open('b', await server()));
      const body = chatBody();
      const reply = await post(running().port, CHAT, body);
      expect(way(reply)).toEqual([200, 'b', 'stalled; from=primary']);
      expect(upstreams[0]?.seen.map((each) => each.body.toString())).toEqual([body]);
      expect(running().finished).toEqual([
        expect.objectContaining({ slot: 'b', status: 200, moves: [{ from: 'primary', to: 'b', reason: 'stalled' }] }),
      ]);
    },
  );

  test('gives them to a target that loads, if none is open', async () => {
    show(closed('primary', DISABLED, to('b')), closed('b', PARK));
    const reply = ask();
    await until(() => waiting('b') === 1);
    expect(running().traffic.read().demand.get(slotName('b'))?.waiting).toBe(1);
    show(closed('primary', DISABLED, to('b')), open('b', await server()));
    expect(way(await reply)).toEqual([200, 'b', 'stalled; from=primary']);
  });

  test('refuses them itself, if no target can answer', async () => {
    show(closed('primary', DISABLED, to('b', 'c', 'none')), closed('b', DISABLED), open('c', await server(), { capabilities: ['speech'] }));
    const reply = await ask();
    expect(way(reply)).toEqual([503, 'primary', undefined]);
    expect(errorOf(reply.text).code).toBe('slot.disabled');
    expect(running().finished).toEqual([expect.objectContaining({ slot: 'primary', moves: [] })]);
  });

  test('gives away those that wait when it begins to refuse', async () => {
    const b = open('b', await server());
    show(closed('primary', PARK, to('b')), b);
    const reply = ask();
    await until(() => waiting() === 1);
    show(closed('primary', DISABLED, to('b')), b);
    expect(way(await reply)).toEqual([200, 'b', 'stalled; from=primary']);
  });

  test('leaves a chain that goes in circles after each slot was asked once', async () => {
    show(closed('primary', DISABLED, to('b')), closed('b', DISABLED, to('c')), closed('c', DISABLED, to('primary')));
    expect(way(await ask())).toEqual([503, 'primary', undefined]);
    show(closed('primary', DISABLED, to('b')), closed('b', PARK, to('c')), closed('c', PARK, to('primary', 'b')));
    const reply = ask();
    await until(() => waiting('b') === 1);
    show(closed('primary', PARK), closed('b', DISABLED, to('c')), closed('c', PARK, to('primary', 'b')));
    await until(() => waiting('c') === 1);
    show(closed('primary', PARK), closed('b', PARK, to('c')), closed('c', DISABLED, to('primary', 'b')));
    expect(way(await reply)).toEqual([503, 'c', 'stalled; from=primary, stalled; from=b']);
  });

  test('does not add headers without a fallback', async () => {
    show(closed('primary', DISABLED), open('b', await server()));
    expect(way(await ask())).toEqual([503, undefined, undefined]);
    expect(way(await ask({ model: 'b' }))).toEqual([200, undefined, undefined]);
    expect(running().finished.map(({ moves }) => moves)).toEqual([undefined, undefined]);
  });
});

describe('A slot that loads', () => {
  test('keeps requests for the time, and is loaded although nobody waits for it then', async () => {
    const b = open('b', await server());
    show(closed('primary', PARK, when('loading > 100ms')), b);
    const replies = [ask(), ask()];
    await until(() => waiting() === 2);
    expect(counts()).toEqual([0]);
    for (const reply of replies) expect(way(await reply)).toEqual([200, 'b', 'loading; from=primary']);
    // One place in the queue that belongs to no request.
    expect(waiting()).toBe(1);
    expect(running().finished.every(({ parkedSeconds = 0 }) => parkedSeconds >= 0.05)).toBe(true);
    show(open('primary', await server(), when('loading > 100ms')), b);
    expect(waiting()).toBe(0);
    expect(way(await ask())).toEqual([200, 'primary', undefined]);
  });

  test('gives them away at once with "loading > 0s"', async () => {
    show(closed('primary', PARK, when('loading > 0s')), open('b', await server()));
    for (let nth = 0; nth < 3; nth += 1) expect(way(await ask())).toEqual([200, 'b', 'loading; from=primary']);
    expect([waiting(), running().finished.map(({ parkedSeconds }) => parkedSeconds)]).toEqual([1, [undefined, undefined, undefined]]);
  });

  test('answers those whose time has not passed', async () => {
    show(closed('primary', PARK, when('loading > 1h')), open('b', await server()));
    const reply = ask();
    await until(() => waiting() === 1);
    show(open('primary', await server(), when('loading > 1h')));
    expect(way(await reply)).toEqual([200, 'primary', undefined]);
    expect(counts()).toEqual([0, 1]);
  });

  test('gives them away when a target opens later', async () => {
    const primary = closed('primary', PARK, when('loading > 20ms'));
    show(primary, closed('b', DISABLED));
    const reply = ask();
    await until(() => waiting() === 1);
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(waiting()).toBe(1);
    show(primary, open('b', await server()));
    expect(way(await reply)).toEqual([200, 'b', 'loading; from=primary']);
  });

  test('lets a client go that leaves after the move', async () => {
    show(closed('primary', PARK, when('loading > 0s')), closed('b', PARK));
    const body = chatBody();
    const req = begin(running().port, CHAT, { 'content-length': body.length });
    req.end(body);
    await until(() => waiting('b') === 1);
    req.destroy();
    await until(() => waiting('b') === 0);
    expect(running().finished).toEqual([expect.objectContaining({ slot: 'b', status: 499 })]);
  });
});

describe('A slot with a long queue', () => {
  const held: (() => void)[] = [];
  const holding: Answer = (_request, res) => void held.push(() => sendJson(res, 200, { ok: true }));
  afterEach(() => void held.splice(0));

  test('gives away the requests beyond it, and gets the next ones when it is shorter', async () => {
    show(open('primary', await server(holding), when('queue > 2')), open('b', await server()));
    const first = [ask(), ask()];
    await until(() => held.length === 2);
    expect(way(await ask())).toEqual([200, 'b', 'queue; from=primary']);
    held.splice(0).forEach((answer) => answer());
    for (const reply of first) expect(way(await reply)).toEqual([200, 'primary', undefined]);
    const next = ask();
    await until(() => held.length === 1);
    held.splice(0).forEach((answer) => answer());
    expect(way(await next)).toEqual([200, 'primary', undefined]);
  });

  test('counts those that wait, and keeps requests if all queues are long', async () => {
    show(closed('primary', PARK, when('queue > 1')), open('b', await server(holding)));
    const replies = [ask(), ask()];
    await until(() => waiting() === 1 && held.length === 1);
    replies.push(ask());
    await until(() => waiting() === 2);
    show(open('primary', await server(), when('queue > 1')), closed('b', PARK));
    held.splice(0).forEach((answer) => answer());
    expect((await Promise.all(replies)).map(way)).toEqual([
      [200, 'primary', undefined],
      [200, 'b', 'queue; from=primary'],
      [200, 'primary', undefined],
    ]);
  });
});

describe('A split', () => {
  const split = (percent: number): Partial<SlotSketch> => ({ fallback: { split: { b: percent } } });
  const chat = (text: string) =>
    ask({
      messages: [
        { role: 'user', content: text },
        { role: 'assistant', content: 'Yes' },
      ],
    });

  test('gives a share of the conversations away, and each turn of one to the same slot', async () => {
    show(open('primary', await server(), split(50)), open('b', await server()));
    const texts = Array.from({ length: 30 }, (_, index) => `Conversation ${index}`);
    const slotOf = async (text: string) => (await chat(text)).headers['x-svc-slot'];
    const first = await Promise.all(texts.map(slotOf));
    expect(new Set(first)).toEqual(new Set(['primary', 'b']));
    expect(await Promise.all(texts.map(slotOf))).toEqual(first);
    const moves = running()
      .finished.filter(({ slot }) => slot === 'b')
      .map((each) => each.moves);
    expect(new Set(moves.map((each) => JSON.stringify(each)))).toEqual(new Set(['[{"from":"primary","to":"b","reason":"split"}]']));
  });

  test('gives requests back if the other slot fails', async () => {
    const broken = await server((_request, res) => sendJson(res, 500, {}));
    show(open('primary', await server(), split(100)), open('b', broken));
    expect(way(await ask())).toEqual([200, 'primary', 'split; from=primary, upstream.failed; from=b']);
  });
});

test('worker processes fall back as well, and report it', async () => {
  const own = await startGateway({ processes: 3 });
  const b = await server();
  publish(own.board, closed('primary', DISABLED, to('b')), open('b', b));
  const replies = await Promise.all(Array.from({ length: 12 }, () => post(own.port, CHAT, chatBody())));
  expect(replies.map(way)).toEqual(replies.map(() => [200, 'b', 'stalled; from=primary']));
  await until(() => own.finished.length === 12);
  expect(own.finished.map(({ slot, moves }) => [slot, moves])).toEqual(
    replies.map(() => ['b', [{ from: 'primary', to: 'b', reason: 'stalled' }]]),
  );
  await own.close();
});
