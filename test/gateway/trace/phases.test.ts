/** Where phases end, with the gateway as it is. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createTracer } from '../../../src/gateway/trace/request-trace.ts';
import { publish } from '../support/board-fixture.ts';
import { chatBody, CHAT } from '../support/client.ts';
import { startUpstream, type FakeUpstream } from '../support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from '../support/gateway-fixture.ts';

let upstream: FakeUpstream;
let gateway: GatewayFixture;
beforeEach(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({ startTrace: createTracer({ isParentBased: true, ratio: 1 }) });
  publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
});
afterEach(async () => {
  await gateway.close();
  await upstream.kill();
});

test('the access check ends before the body comes, and the attempt begins after it', async () => {
  const body = chatBody();
  const socket = connect(gateway.port, '127.0.0.1');
  socket.write(`POST ${CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`);
  await until(() => gateway.gateway.load().requests === 1);
  const admittedAt = performance.now();
  await new Promise((resolve) => setTimeout(resolve, 20));
  const pausedMs = performance.now() - admittedAt;
  socket.write(body);
  await once(socket, 'data');
  await until(() => gateway.finished.length === 1);
  socket.destroy();
  const [auth, attempt, ...more] = gateway.finished[0]?.trace?.phases ?? [];
  expect([auth?.kind, attempt?.kind, more]).toEqual(['auth', 'attempt', []]);
  expect((attempt?.fromMs ?? 0) - (auth?.untilMs ?? 0)).toBeGreaterThanOrEqual(pausedMs);
});
