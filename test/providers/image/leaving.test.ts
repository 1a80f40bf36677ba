/** Clients that leave while ComfyUI works for them: what is theirs is cancelled, and nothing else. */
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import { begin } from '../../gateway/support/client.ts';
import { until } from '../../gateway/support/gateway-fixture.ts';
import { createComfyWorld, GENERATIONS, IMG } from '../../support/comfyui/comfy-gateway.ts';
import type { Comfy } from '../../support/comfyui/comfy-server.ts';

const { at, start, draw, close } = createComfyWorld();

afterEach(close);

describe('a client that leaves', () => {
  const leave = async (standIn: Comfy, when: () => boolean): Promise<void> => {
    const body = JSON.stringify({ prompt: 'leaving', steps: 10 });
    const request = begin(at().gateway.port, GENERATIONS, { 'content-length': Buffer.byteLength(body) });
    request.end(body);
    await until(when);
    request.destroy();
    await until(() => at().gateway.gateway.load().requests === 0 && at().gateway.traffic.ofSlot(IMG).inFlight === 0);
    await until(() => standIn.queue().running.length + standIn.queue().pending.length === 0);
  };

  test('while its image is drawn has it interrupted', async () => {
    const standIn = await start('sdxl-turbo', { behaviour: { stepMs: 200 } });
    await leave(standIn, () => standIn.queue().running.length === 1);
    expect(standIn.interrupts).toEqual(standIn.order);
    standIn.behave({ stepMs: 1 });
    expect((await draw()).status).toBe(200);
  });

  test('while its workflow is on its way has it removed, as the server queues it all the same', async () => {
    const standIn = await start('sdxl-turbo', { behaviour: { acceptMs: 300, paused: true } });
    await leave(standIn, () => standIn.workflows.length === 1);
    expect(standIn.order.length).toBeLessThanOrEqual(1);
    standIn.behave({ acceptMs: 0, paused: false });
    expect((await draw()).status).toBe(200);
  });

  test('while its request waits has it removed from the queue, and no other is touched', async () => {
    const standIn = await start('sdxl-turbo', { behaviour: { stepMs: 50 } });
    const other = draw({ steps: 10 });
    await until(() => standIn.queue().running.length === 1);
    await leave(standIn, () => standIn.queue().pending.length === 1);
    expect((await other).status).toBe(200);
    expect(standIn.order).toHaveLength(1);
    // Never that of the other, and never "whatever runs".
    expect(standIn.interrupts).toHaveLength(1);
    expect(standIn.order).not.toContain(standIn.interrupts[0]);
    expect(standIn.interrupts).not.toContain(undefined);
  });
});

test('of 50 requests of ten clients, half of which leave, the others are answered in their order, and nothing is left in the queue', async () => {
  const standIn = await start('sdxl-turbo', { behaviour: { paused: true } });
  const { port } = at().gateway;
  const idOf = (text: string): string => JSON.parse(text).prompt_id;
  const answered: number[] = [];
  const requests: { readonly request: ReturnType<typeof begin>; readonly leaves: boolean }[] = [];
  for (let index = 0; index < 50; index += 1) {
    const body = JSON.stringify({ prompt: `image ${index}`, size: '64x64', steps: 2 });
    const request = begin(port, GENERATIONS, { 'content-length': Buffer.byteLength(body) });
    request.on('response', (response) => {
      response.resume();
      response.on('end', () => answered.push(index));
    });
    request.end(body);
    // One after the other, so that their order in the queue is known.
    await until(() => standIn.workflows.length === index + 1);
    requests.push({ request, leaves: index % 2 === 1 });
  }
  // Those that wait take almost nothing: their bodies, and no answers of the server.
  expect(at().gateway.gateway.load().bufferedBytes).toBeLessThan(50 * 4096);
  for (const { request, leaves } of requests) if (leaves) request.destroy();
  const stay = requests.flatMap(({ leaves }, index) => (leaves ? [] : [index]));
  await until(() => standIn.queue().pending.length === stay.length - 1);
  standIn.behave({ paused: false });
  await until(() => answered.length >= stay.length);
  expect(answered.toSorted((a, b) => a - b)).toEqual(stay);
  await until(() => standIn.queue().running.length + standIn.queue().pending.length === 0);
  await until(() => standIn.sockets() === 0 && at().gateway.traffic.ofSlot(IMG).inFlight === 0);
  const began = standIn.order.map((id) => standIn.workflows.findIndex((text) => idOf(text) === id));
  expect(began).toEqual(stay);
  await until(() => at().gateway.gateway.load().requests === 0);
  expect(at().gateway.gateway.load()).toMatchObject({ requests: 0, bufferedBytes: 0, spooledBytes: 0 });
  expect((await readdir(path.join(at().dir, 'images'))).filter((name) => !name.endsWith('.png'))).toEqual([]);
}, 120_000);
