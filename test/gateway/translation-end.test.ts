/** What a translation has the server sent once its request has ended. */
import { afterEach, expect, test } from '@jest/globals';
import type { Steps, TranslationEnd } from '../../src/providers/translation.ts';
import { ask, onEnd, onLeave } from '../../src/providers/translation-steps.ts';
import { begin } from './support/client.ts';
import { sendJson, type Answer } from './support/fake-upstream.ts';
import { until } from './support/gateway-fixture.ts';
import { json } from './support/toy-translations.ts';
import { IMAGES, NOTHING_LEFT, startTranslation, TOY, type TranslationFixture } from './support/translation-fixture.ts';

let world: TranslationFixture | undefined;

afterEach(async () => {
  expect(await world?.close()).toEqual(NOTHING_LEFT);
});

function* compute(): Steps<TranslationEnd> {
  yield* onLeave([{ method: 'POST', path: '/cancel' }]);
  yield* onEnd([{ method: 'POST', path: '/forget' }]);
  const { status } = yield* ask({ method: 'POST', path: '/compute' });
  return status === 200 ? json({ status }) : { kind: 'failed', message: 'Look at the log' };
}

/** A server that answers nothing before it is told to. */
function waitingServer() {
  const waiting = new Map<string, (status: number) => void>();
  const answer: Answer = ({ url }, res) => void waiting.set(url, (status) => sendJson(res, status, {}));
  return {
    answer,
    asked: () => [...waiting.keys()],
    reply: (url: string, status = 200) => waiting.get(url)?.(status),
  };
}

test.each([
  ['answered', 200, 200],
  ['failed', 500, 502],
])('a client whose request is %s does not wait for it, and the workload is held until it is done', async (_what, status, answered) => {
  const server = waitingServer();
  world = await startTranslation(compute, server.answer);
  const { gateway, speak } = world;
  const reply = speak();
  await until(() => server.asked().length === 1);
  server.reply('/compute', status);
  expect((await reply).status).toBe(answered);
  await until(() => server.asked().length === 2);
  expect(server.asked()).toEqual(['/compute', '/forget']);
  expect(gateway.traffic.ofSlot(TOY).inFlight).toBe(1);
  server.reply('/forget');
  await until(() => gateway.traffic.ofSlot(TOY).inFlight === 0);
});

test('a client that leaves has its work cancelled first', async () => {
  const server = waitingServer();
  world = await startTranslation(compute, server.answer);
  const { gateway } = world;
  const req = begin(gateway.port, IMAGES, {});
  req.end('{"model":"toy"}');
  await until(() => server.asked().length === 1);
  req.destroy();
  await until(() => server.asked().length === 2);
  server.reply('/cancel');
  await until(() => server.asked().length === 3);
  server.reply('/forget');
  expect(server.asked()).toEqual(['/compute', '/cancel', '/forget']);
  await until(() => gateway.traffic.ofSlot(TOY).inFlight === 0);
});
