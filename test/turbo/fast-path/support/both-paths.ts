/** Two equal services, one with the fast path and one without, and what each makes of the same bytes. */
import { createServer } from 'node:net';
import { createTokenCheck } from '../../../../src/auth/check-token.ts';
import { createTracer } from '../../../../src/gateway/trace/request-trace.ts';
import type { FinishedRequest } from '../../../../src/gateway/exchange-deps.ts';
import { publish, slotName } from '../../../gateway/support/board-fixture.ts';
import { startGateway, type GatewayFixture } from '../../../gateway/support/gateway-fixture.ts';
import { MemorySocket } from './memory-socket.ts';

/** The requests of one connection, one after the other, each in the pieces in which it arrives. */
export type Conversation = readonly (readonly Buffer[])[];

export interface Outcome {
  /** What each client reads, and what has become of its connection, after each request and after the client has ended the connection. */
  readonly conversations: readonly string[];
  /** What the metrics count, for all clients together, and the phases of traces if both services have them. */
  readonly reported: readonly string[];
}

export interface BothPaths {
  /** Sends requests on new connections to each of the services, and waits after each one until neither service does anything more. */
  compare(conversations: readonly Conversation[]): Promise<{ readonly fast: Outcome; readonly node: Outcome }>;
  /** Requests that Node's HTTP server of the service with the fast path has read. */
  readByNode(): number;
  close(): Promise<void>;
}

/** Turns of the event loop in which nothing happens, after which nothing will: no part of an answer waits longer, except for the upstream. */
const QUIET_TURNS = 6;
export const TOKEN = 'svc_good';
const SLOTS = ['primary', 'spread'].map(slotName);
/** Replicas of the slot "spread". Picks depend on the requests in flight, so only sequential requests are alike. */
const REPLICAS = 3;

const HEADER_LIMIT = 2048;
const SETTINGS = { SVC_BODY_LIMIT: '4Ki', SVC_HEADER_LIMIT: String(HEADER_LIMIT), SVC_CORS_ORIGINS: 'https://chat.example.com' };

const authorize = createTokenCheck(
  { SVC_AUTH_ENABLED: true, SVC_TRUSTED_PROXIES: [], SVC_PROXY_SECRET: undefined, SVC_IDENTITY_ROLES: {} },
  {
    store: { current: () => new Map() },
    verifier: { verify: (token) => (token === TOKEN ? { id: 'a', key: 'caller', identity: 'tests', scope: 'v1-only' } : undefined) },
    onUse: () => undefined,
  },
);

/** Who traces its requests. Where only one does, upstreams do not return the headers of traces. */
export type Traced = 'none' | 'both' | 'fast';

/** The same ids in both services. */
const startTrace = createTracer({ isParentBased: true, ratio: 1 }, (bytes) => 'ab'.repeat(bytes));
const TRACE_LINES = /\r\n(?:traceparent|tracestate):[^\r]*/gi;

export async function startBothPaths(traced: Traced = 'none'): Promise<BothPaths> {
  const upstreams = await Promise.all(Array.from({ length: REPLICAS }, () => startEcho(traced === 'fast')));
  const [fast, node] = await Promise.all(
    [
      { SVC_FAST_PATH: '1', isTraced: traced !== 'none' },
      { SVC_FAST_PATH: '0', isTraced: traced === 'both' },
    ].map(({ SVC_FAST_PATH, isTraced }) =>
      startGateway({ authorize, settings: { ...SETTINGS, SVC_FAST_PATH }, ...(isTraced ? { startTrace } : {}) }),
    ),
  );
  if (fast === undefined || node === undefined) throw new Error('Start both services');
  const targets = upstreams.map(({ port }) => ({ workload: 'w', port }));
  const presets = { think: { set: { temperature: 0.6 }, force: { seed: 7 } } };
  for (const { board } of [fast, node])
    publish(board, { name: 'primary', presets, targets: targets.slice(0, 1) }, { name: 'spread', targets });
  let readByNode = 0;
  fast.api.server.on('request', () => (readByNode += 1));
  return {
    readByNode: () => readByNode,
    async compare(conversations) {
      const services = [begin(fast, conversations), begin(node, conversations)] as const;
      const rounds = Math.max(...conversations.map(({ length }) => length));
      for (let round = 0; round < rounds; round += 1) {
        await send(services, round);
        await quiet(services);
        for (const { clients } of services) for (const client of clients) client.look();
      }
      for (const { clients } of services) for (const { socket } of clients) if (!socket.destroyed) socket.push(null);
      await quiet(services);
      return { fast: finish(services[0], traced), node: finish(services[1], traced) };
    },
    async close() {
      await Promise.all([fast.close(), node.close()]);
      await Promise.all(upstreams.map((upstream) => upstream.close()));
    },
  };
}

/** Most follow each other on the same connection. */
const ANSWER_HEADERS = [
  'content-type: application/json\r\n',
  'content-type: application/json\r\n',
  'Server: llama.cpp\r\nContent-Type: application/json; charset=utf-8\r\nKeep-Alive: timeout=5, max=100\r\n',
  'Date: Mon, 23 Nov 2026 07:00:00 GMT\r\ncontent-type: application/json\r\nConnection: keep-alive\r\n',
  'content-type: text/event-stream\r\nX-Accel-Buffering: yes\r\nAccess-Control-Allow-Origin: *\r\n',
  'content-type: text/event-stream\r\nVary: Accept\r\nX-Request-Id: theirs\r\n',
];

/** Answers with the bytes of the request, so that what the upstream gets is compared as well. */
async function startEcho(hidesTraces: boolean): Promise<{ readonly port: number; close(): Promise<void> }> {
  const server = createServer((socket) => {
    let text = '';
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1');
      const head = text.indexOf('\r\n\r\n');
      // The gateway writes it last.
      const length = Number(/\r\ncontent-length: (\d+)$/.exec(text.slice(0, head))?.[1]);
      if (head === -1 || text.length < head + 4 + length) return;
      const untraced = text.replaceAll(TRACE_LINES, '');
      const body = JSON.stringify(hidesTraces ? untraced : text);
      // Both services send as many bytes besides.
      const lines = ANSWER_HEADERS[untraced.length % ANSWER_HEADERS.length] ?? '';
      text = '';
      socket.write(`HTTP/1.1 200 OK\r\n${lines}content-length: ${body.length}\r\n\r\n${body}`, 'latin1');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('Listen on a port');
  return { port: address.port, close: () => new Promise((resolve) => server.close(() => resolve())) };
}

interface Client {
  readonly socket: MemorySocket;
  readonly conversation: Conversation;
  readonly seen: string[];
  /** Writes down what there is to see. */
  look(): void;
}

interface Service {
  readonly gateway: GatewayFixture;
  readonly clients: readonly Client[];
}

function begin(gateway: GatewayFixture, conversations: readonly Conversation[]): Service {
  gateway.finished.length = 0;
  gateway.reported.length = 0;
  const clients = conversations.map((conversation): Client => {
    const socket = new MemorySocket();
    gateway.api.server.emit('connection', socket);
    const seen: string[] = [];
    const look = (): void => {
      seen.push(withoutChance(socket.sent), socket.writableEnded ? 'ended' : 'open', socket.destroyed ? 'closed' : '');
      socket.sent = '';
    };
    return { socket, conversation, seen, look };
  });
  return { gateway, clients };
}

async function send(services: readonly Service[], round: number): Promise<void> {
  const clients = services.flatMap((service) => service.clients);
  const most = Math.max(...clients.map(({ conversation }) => conversation[round]?.length ?? 0));
  for (let index = 0; index < most; index += 1) {
    for (const { socket, conversation } of clients) {
      const piece = conversation[round]?.[index];
      if (piece !== undefined && !socket.destroyed) socket.push(piece);
    }
    await turn();
  }
}

async function quiet(services: readonly Service[]): Promise<void> {
  let last = -1;
  for (let turns = 0; turns < QUIET_TURNS; turns += 1) {
    await turn();
    const now = services.flatMap(({ clients }) => clients).reduce((bytes, { socket }) => bytes + socket.sent.length, 0);
    // Only a complete request has an upstream, which answers.
    const isForwarding = services.some(({ gateway }) => SLOTS.some((slot) => gateway.traffic.ofSlot(slot).inFlight > 0));
    if (isForwarding || now !== last) turns = 0;
    last = now;
  }
}

function finish({ gateway, clients }: Service, traced: Traced): Outcome {
  for (const { socket, look } of clients) {
    look();
    socket.destroy();
  }
  const requests = [...gateway.finished, ...gateway.reported];
  return {
    conversations: clients.map(({ seen }) => seen.join(' | ')),
    reported: requests
      .map(({ slot, route, status, trace }) => `${slot ?? '-'} ${route} ${status}${traced === 'both' ? phasesOf(trace) : ''}`)
      .toSorted(),
  };
}

const phasesOf = (trace: FinishedRequest['trace']): string => ` ${trace?.phases.map(({ kind }) => kind).join(' ') ?? 'not traced'}`;

/** Replaces what differs from request to request. */
function withoutChance(sent: string): string {
  return sent.replaceAll(/req_[0-9a-f]{32}/g, 'req_').replaceAll(/(\r\n(?:date|retry-after|openai-processing-ms)): [^\r]*/gi, '$1: ');
}

async function turn(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
}
