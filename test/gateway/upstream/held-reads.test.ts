/** A stream is read when neither its client nor other streams are to be waited for. */
import { afterEach, expect, test } from '@jest/globals';
import { createServer, type Socket } from 'node:net';
import { UpstreamConnection } from '../../../src/gateway/upstream/upstream-connection.ts';
import type { UpstreamEvents } from '../../../src/gateway/request-events.ts';
import { until } from '../support/gateway-fixture.ts';

const open: (() => void)[] = [];
afterEach(() => {
  for (const close of open.splice(0).toReversed()) close();
});

async function startUpstream(): Promise<{ readonly port: number; readonly accepted: readonly Socket[] }> {
  const accepted: Socket[] = [];
  const server = createServer((socket) => void accepted.push(socket.on('error', () => undefined)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  open.push(() => {
    for (const socket of accepted) socket.destroy();
    server.close();
  });
  const address = server.address();
  return { port: typeof address === 'object' && address !== null ? address.port : 0, accepted };
}

interface Stream {
  readonly reads: UpstreamConnection;
  readonly upstream: Socket;
  /** What has been read of the body. */
  readonly body: () => string;
}

async function openStream({ port, accepted }: Awaited<ReturnType<typeof startUpstream>>): Promise<Stream> {
  const count = accepted.length;
  const links = {
    connect: (): never => {
      throw new Error('The upstream is not remote');
    },
  };
  const reads = new UpstreamConnection(
    { host: '127.0.0.1', port },
    { onIdle: () => undefined, onGone: () => undefined },
    { links, coalesce: () => undefined },
  );
  open.push(() => reads.destroy());
  let body = '';
  const events: UpstreamEvents = {
    onConnected: () => undefined,
    onDrain: () => undefined,
    onHead: () => undefined,
    onBody: (bytes) => void (body += String(bytes)),
    onBroken: ({ message }) => void (body += message),
  };
  reads.begin(events);
  await until(() => accepted.length > count);
  const [upstream] = accepted.slice(-1);
  if (upstream === undefined) throw new Error('The upstream has no connection');
  upstream.write('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nfirst');
  await until(() => body === 'first');
  return { reads, upstream, body: () => body };
}

const STEPS = {
  pause: ({ reads }: Stream) => reads.pause(),
  resume: ({ reads }: Stream) => reads.resume(),
  hold: ({ reads }: Stream) => reads.hold(),
  release: ({ reads }: Stream) => reads.release(),
};

test.each([
  { steps: ['pause'], isRead: false, last: 'resume' },
  { steps: ['hold'], isRead: false, last: 'release' },
  { steps: ['pause', 'hold', 'release'], isRead: false, last: 'resume' },
  { steps: ['hold', 'pause', 'release'], isRead: false, last: 'resume' },
  { steps: ['hold', 'pause', 'resume'], isRead: false, last: 'release' },
  { steps: ['pause', 'hold', 'resume'], isRead: false, last: 'release' },
  { steps: ['pause', 'hold', 'release', 'resume'], isRead: true },
  { steps: ['hold', 'pause', 'resume', 'release'], isRead: true },
] as const)('after $steps, a stream is read: $isRead', async ({ steps, isRead, ...then }) => {
  const upstream = await startUpstream();
  const stream = await openStream(upstream);
  const other = await openStream(upstream);
  for (const step of steps) STEPS[step](stream);
  stream.upstream.write(' second');
  // What was written before to the stream would have been read by then.
  for (const sent of ['1', '2', '3']) {
    other.upstream.write(sent);
    await until(() => other.body().endsWith(sent));
  }
  if (isRead) await until(() => stream.body() === 'first second');
  else expect(stream.body()).toBe('first');
  if (!('last' in then)) return;
  STEPS[then.last](stream);
  await until(() => stream.body() === 'first second');
});
