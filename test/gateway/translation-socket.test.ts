/** WebSockets of translations to their servers: what is said, what is not believed, and that nothing is left of them. */
import { afterEach, describe, expect, test } from '@jest/globals';
import type { AddressInfo } from 'node:net';
import { WebSocketServer, type WebSocket } from 'ws';
import type { SocketMessage, Steps, Translate, TranslationEnd } from '../../src/providers/translation.ts';
import { listen, nextMessage, reportProgress, wait } from '../../src/providers/translation-steps.ts';
import { begin } from './support/client.ts';
import { until } from './support/gateway-fixture.ts';
import { json } from './support/toy-translations.ts';
import { failedWith, IMAGES, NOTHING_LEFT, says, startTranslation, TOY, type TranslationFixture } from './support/translation-fixture.ts';

const MIB = 1024 * 1024;
let world: TranslationFixture | undefined;
let server: WebSocketServer | undefined;

afterEach(async () => {
  expect(await world?.close()).toEqual(NOTHING_LEFT);
  for (const socket of server?.clients ?? []) socket.terminate();
  await new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)));
  world = undefined;
  server = undefined;
});

/** A slot whose server says these messages to whoever listens. */
async function start(run: Translate, greet: (socket: WebSocket) => void, settings: Readonly<Record<string, string>> = {}) {
  world = await startTranslation(run, says, settings);
  server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  server.on('connection', greet);
  await new Promise((resolve) => server?.once('listening', resolve));
  world.serve(portOf(server.address()), 'w2');
  return world;
}

const portOf = (address: AddressInfo | string | null): number => (typeof address === 'object' && address !== null ? address.port : 0);

const shown = (message: SocketMessage): string =>
  message.kind === 'text' ? message.text : message.kind === 'binary' ? `${message.bytes.length} bytes` : message.kind;

/** Answers with what it hears until the WebSocket is closed, or silent. */
function* hearAll(): Steps<TranslationEnd> {
  yield* listen('/ws?clientId=a');
  const heard: string[] = [];
  for (;;) {
    const { message } = yield* nextMessage(heard.length === 0 ? 10_000 : 300);
    heard.push(shown(message));
    if (message.kind === 'none' || message.kind === 'closed') return json({ heard });
  }
}

async function heardFrom(greet: (socket: WebSocket) => void, settings?: Readonly<Record<string, string>>): Promise<unknown> {
  const { speak } = await start(hearAll, greet, settings);
  const reply = await speak();
  return JSON.parse(reply.text).heard;
}

describe('a WebSocket', () => {
  test('gives its messages in their order, and says that no more will come', async () => {
    const heard = await heardFrom((socket) => {
      socket.send('one');
      socket.send(Buffer.alloc(3));
      socket.send('two');
      socket.close();
    });
    expect(heard).toEqual(['one', '3 bytes', 'two', 'closed']);
    await until(() => server?.clients.size === 0);
  });

  test('may be silent', async () => {
    expect(await heardFrom((socket) => socket.send('one'))).toEqual(['one', 'none']);
    await until(() => server?.clients.size === 0);
  });

  test('gives all of a thousand messages to a translation that reads slowly', async () => {
    const count: Translate = function* run() {
      yield* listen('/ws');
      yield* wait(300);
      let heard = 0;
      while ((yield* nextMessage(300)).message.kind === 'binary') heard += 1;
      return json({ heard });
    };
    const { speak } = await start(count, (socket) => {
      for (let index = 0; index < 1000; index += 1) socket.send(Buffer.alloc(20_000));
    });
    expect(JSON.parse((await speak()).text).heard).toBe(1000);
  });

  test('ends with a message that is too large', async () => {
    expect(await heardFrom((socket) => socket.send(Buffer.alloc(5 * MIB)))).toEqual(['closed']);
  });

  test('ends with a message for which there is no memory', async () => {
    expect(await heardFrom((socket) => socket.send(Buffer.alloc(2 * MIB)), { SVC_BUFFER_LIMIT: '1Mi' })).toEqual(['closed']);
  });

  test('that the server does not open is closed', async () => {
    world = await startTranslation(hearAll, (_request, res) => void res.writeHead(404).end());
    expect(JSON.parse((await world.speak()).text).heard).toEqual(['closed']);
  });

  test('is closed when the client leaves, or the translation throws', async () => {
    const { gateway, speak } = await start(
      function* run({ body }) {
        yield* listen('/ws');
        if (body.kind === 'json' && body.text.includes('throw')) throw new Error('A mistake');
        for (;;) yield* nextMessage(1000);
      },
      (socket) => void socket,
    );
    const request = begin(gateway.port, IMAGES, { 'content-type': 'application/json' });
    request.on('error', () => undefined);
    request.end('{"model":"toy"}');
    await until(() => server?.clients.size === 1);
    request.destroy();
    await until(() => server?.clients.size === 0);
    expect(failedWith(await speak({ throw: true }))).toEqual([502, 'upstream.failed', 'gateway']);
    await until(() => server?.clients.size === 0);
    gateway.faults.length = 0;
  });
});

test('progress is that of the request that reported last, and goes with it', async () => {
  const { gateway, speak } = await start(
    function* run() {
      yield* reportProgress({ done: 3, total: 20 });
      yield* listen('/ws');
      yield* nextMessage(10_000);
      return json({});
    },
    (socket) => setTimeout(() => socket.send('go on'), 200),
  );
  const reply = speak();
  await until(() => gateway.traffic.ofSlot(TOY).progress?.done === 3);
  expect((await reply).status).toBe(200);
  expect(gateway.traffic.ofSlot(TOY).progress).toBeUndefined();
});
