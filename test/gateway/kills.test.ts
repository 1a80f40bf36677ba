/** A real server process that is killed again and again under load, at random moments, while the board follows with a random delay. */
import { afterEach, expect, test } from '@jest/globals';
import { fork, type ChildProcess } from 'node:child_process';
import { freePort } from '../support/free-port.ts';
import { createRandom } from '../support/simulation/seeded-random.ts';
import { PARK, publish, workloadId } from './support/board-fixture.ts';
import { CHAT, chatBody, post } from './support/client.ts';
import { startGateway, until, type GatewayFixture } from './support/gateway-fixture.ts';

const KILLS = 25;
const CLIENTS = 6;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

let gateway: GatewayFixture;
let child: ChildProcess;
let stopped = false;
// After a failure as well: the clients, the server and the gateway would keep this process alive.
afterEach(async () => {
  stopped = true;
  child.kill('SIGKILL');
  await gateway.close();
});

async function startServer(port: number): Promise<ChildProcess> {
  const child = fork(new URL('./support/killed-server.ts', import.meta.url), [String(port)]);
  await new Promise((resolve) => child.once('message', resolve));
  return child;
}

test('kills of a server lose only requests whose answer had begun', async () => {
  gateway = await startGateway({ settings: { SVC_PARK_TIMEOUT: '60s' } });
  const port = await freePort();
  let nth = 0;
  child = await startServer(port);
  const serve = (): void => void publish(gateway.board, { name: 'primary', targets: [{ workload: `w${nth}`, port }] });
  serve();
  const outcomes = { answered: 0, cut: 0 };
  const lost: string[] = [];
  const rounds = Array.from({ length: CLIENTS }, () => 0);
  const clients = Array.from({ length: CLIENTS }, async (_, index) => {
    for (let round = 0; !stopped; round += 1) {
      rounds[index] = round;
      const stream = (index + round) % 2 === 0;
      const reply = await post(gateway.port, CHAT, chatBody({ stream, pad: 'x'.repeat(index * 1000) })).catch((error: unknown) => error);
      if (reply instanceof Error) lost.push(reply.message);
      else {
        const { status, text, cut } = Object(reply);
        const whole = stream ? String(text).endsWith('data: [DONE]\n\n') : text === '{"ok":true}';
        if (status === 200 && whole) outcomes.answered += 1;
        // An answer had begun if at least one byte of the server's own arrived.
        else if (status === 200 && stream && String(text).startsWith('data: 1')) outcomes.cut += 1;
        else lost.push(`${status} ${cut} ${text}`);
      }
    }
  });
  const random = createRandom(11);
  for (; nth < KILLS;) {
    // No request meets more than one kill: one that had been there at three deaths would be taken for their cause.
    const before = [...rounds];
    await until(() => rounds.every((round, index) => round > (before[index] ?? 0)));
    await pause(random.next() * 50);
    const dead = workloadId(`w${nth}`);
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    // The board shows the death at once, or later, or only when the next process is there; the executor ends the requests of the dead workload.
    if (random.next() < 0.5) await gone;
    if (random.next() < 0.7) {
      await pause(random.next() * 250);
      publish(gateway.board, { name: 'primary', admission: PARK });
      gateway.traffic.abort(dead);
    }
    await gone;
    child = await startServer(port);
    nth += 1;
    serve();
    if (random.next() < 0.3) gateway.traffic.abort(dead);
  }
  stopped = true;
  await Promise.all(clients);
  expect(lost).toEqual([]);
  expect(outcomes.answered).toBeGreaterThan(KILLS);
  expect(gateway.faults).toEqual([]);
}, 120_000);
