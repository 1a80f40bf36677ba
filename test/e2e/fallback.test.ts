/** A running service whose slots name each other as fallback, with real servers. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { chatText, condition, isAnswering, servingProcess, startService, type Service } from '../support/service.ts';

const slotOf = (model: string, more = '') => `provider = "gguf"\nbackend = "cpu"\n${more}\n[model]\ndefault = "${model}"\n`;
const FOX = DEMO_SENTENCES['demo-fox'];
const way = ({ status, headers }: Response) => [status, headers.get('x-svc-slot'), headers.get('x-svc-fallback')];
let service: Service;

beforeAll(async () => {
  service = await startService({ runtime: 'process', environment: { SVC_WORKERS: '2' } });
  await service.save('second', slotOf('demo-fox'));
  await service.until('second', 'ready', isAnswering);
}, 120_000);
afterAll(async () => await service.dispose(), 60_000);

const explained = async (): Promise<string> => Object(await (await fetch(`${service.url}/api/slots/primary/explain`)).json()).text;

test('a slot that is off and one whose model is missing give their requests away, and say how', async () => {
  await service.save('primary', `enabled = false\n${slotOf('demo-fox', '[fallback]\nto = ["second"]')}`);
  await service.until('primary', 'the fallback', (seen) =>
    /requests fall back to "second"/.test(condition(seen, 'SpecValid')?.message ?? ''),
  );
  const off = await service.chat();
  expect(way(off)).toEqual([200, 'second', 'stalled; from=primary']);
  expect(await chatText(off)).toBe(FOX);
  expect(await explained()).toContain('fallback: to "second" when stalled, upstream.failed');
  await service.save('primary', slotOf('missing.gguf', '[fallback]\nto = ["none", "second"]'));
  const slot = await service.until('primary', 'FallbackUnusable', (seen) => condition(seen, 'SpecValid')?.reason === 'FallbackUnusable');
  expect(condition(slot, 'SpecValid')).toMatchObject({
    status: 'True',
    message: expect.stringContaining('Fallback to "none" has no effect'),
  });
  expect(way(await service.chat())).toEqual([200, 'second', 'stalled; from=primary']);
}, 60_000);

test('a slot that loads gives its requests away at once, is loaded all the same, and answers then', async () => {
  const text = slotOf('demo-fox', 'load = "on-demand"\n[fallback]\nto = ["second"]\nwhen = ["loading > 0s", "upstream.failed"]');
  await service.save('third', text);
  await service.until(
    'third',
    'a slot at rest',
    (seen) => condition(seen, 'SpecValid')?.reason === 'Parsed' && seen?.status.state === 'offline',
  );
  expect(way(await service.chat({ model: 'third' }))).toEqual([200, 'second', 'loading; from=third']);
  await service.until('third', 'ready', isAnswering);
  expect(way(await service.chat({ model: 'third' }))).toEqual([200, 'third', null]);
}, 60_000);

test('a server that is killed loses its requests to the other slot before it is replaced', async () => {
  const before = await service.until('third', 'ready', isAnswering);
  const pid = await servingProcess(service, 'third');
  if (pid === undefined) throw new Error('No process answers');
  process.kill(pid, 'SIGKILL');
  const replies = await Promise.all(Array.from({ length: 8 }, () => service.chat({ model: 'third' })));
  const restarted = await service.until('third', 'a replaced server', (seen) => isAnswering(seen) && (seen?.status.restarts ?? 0) > 0);
  expect(restarted.status.restarts).toBeGreaterThan(before.status.restarts);
  // Those that came after the new server had been started are answered by it.
  expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200));
  expect(replies.some(({ headers }) => /^(upstream\.failed|loading); from=third$/.test(headers.get('x-svc-fallback') ?? ''))).toBe(true);
  expect(await (await fetch(`${service.url}/api/metrics`)).text()).toMatch(
    /^svc_fallback_total\{slot="third",to="second",reason="loading"\} [1-9]/m,
  );
}, 60_000);

test('a share of the requests goes to the other slot', async () => {
  await service.save('primary', slotOf('demo-fox', 'load = "on-demand"\n[fallback]\nsplit = { second = 100 }'));
  await service.until('primary', 'the split', (seen) => /100 % to "second"/.test(condition(seen, 'SpecValid')?.message ?? ''));
  expect(way(await service.chat())).toEqual([200, 'second', 'split; from=primary']);
}, 60_000);
