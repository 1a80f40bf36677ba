/** How the service hears of a job: at once over the WebSocket of the server, and from history where that is silent, broken or missing. */
import { afterEach, describe, expect, test } from '@jest/globals';
import { begin } from '../../gateway/support/client.ts';
import { until } from '../../gateway/support/gateway-fixture.ts';
import { createComfyWorld, failedWith, GENERATIONS, IMG } from '../../support/comfyui/comfy-gateway.ts';
import type { Comfy } from '../../support/comfyui/comfy-server.ts';

const { at, start, draw, close } = createComfyWorld();

afterEach(close);

const polls = ({ seen }: Comfy): number => seen.filter(({ path }) => path.startsWith('/history/')).length;
const progress = () => at().gateway.traffic.ofSlot(IMG).progress;

describe('with the WebSocket', () => {
  test('history is asked once, when the server says that the job has ended', async () => {
    const standIn = await start('sdxl-turbo', { behaviour: { stepMs: 100 } });
    expect((await draw({ steps: 10, size: '64x64' })).status).toBe(200);
    expect(polls(standIn)).toBe(1);
    await until(() => standIn.sockets() === 0);
  });

  test('each step is reported while the image is drawn, and forgotten after it', async () => {
    const standIn = await start('sdxl-turbo', { behaviour: { stepMs: 20 } });
    const seen = new Set<string>();
    const told: string[] = [];
    const stop = at().gateway.traffic.watchProgress((slot, now) => told.push(`${slot} ${now?.done}/${now?.total}`));
    expect(progress()).toBeUndefined();
    const reply = draw({ steps: 10 });
    await until(() => {
      const now = progress();
      if (now !== undefined) seen.add(`${now.done}/${now.total}`);
      return now?.done === 5;
    });
    standIn.behave({ paused: true });
    for (const text of seen) expect(text).toMatch(/^[1-9]\/10$/);
    standIn.behave({ paused: false });
    expect((await reply).status).toBe(200);
    await until(() => progress() === undefined);
    expect(told).toEqual([...Array.from({ length: 10 }, (_, step) => `img ${step + 1}/10`), 'img undefined/undefined']);
    stop();
    expect((await draw()).status).toBe(200);
    expect(told).toHaveLength(11);
  });

  test('a client that leaves closes it, and its progress is forgotten', async () => {
    const standIn = await start('sdxl-turbo', { behaviour: { stepMs: 50 } });
    const body = JSON.stringify({ prompt: 'x', steps: 10 });
    const request = begin(at().gateway.port, GENERATIONS, { 'content-length': Buffer.byteLength(body) });
    request.on('error', () => undefined);
    request.end(body);
    await until(() => progress() !== undefined);
    request.destroy();
    await until(() => standIn.sockets() === 0 && progress() === undefined);
    await until(() => standIn.queue().running.length === 0);
  });

  test.each([
    ['memory', 'The device has too little memory'],
    ['node', 'Node "SamplerCustom" of the image server failed'],
  ] as const)('a job that fails for %s is answered when the server says so', async (failure, message) => {
    const standIn = await start('sdxl-turbo', { behaviour: { failure } });
    const [status, code, text] = failedWith(await draw());
    expect([status, code]).toEqual([502, 'image.failed']);
    expect(text).toContain(message);
    expect(polls(standIn)).toBe(1);
  });

  test('ten requests hear of their own jobs only', async () => {
    const standIn = await start('sdxl-turbo', { behaviour: { stepMs: 5 } });
    const replies = await Promise.all(Array.from({ length: 10 }, async () => draw({ steps: 3, size: '64x64' })));
    expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200));
    expect(polls(standIn)).toBe(10);
  });
});

describe('without the WebSocket', () => {
  test.each(['refused', 'broken', 'silent', 'garbage'] as const)(
    'that is %s, history says what became of the job',
    async (socket) => {
      const standIn = await start('sdxl-turbo', { behaviour: { socket, stepMs: 100 } });
      expect((await draw({ steps: 5, size: '64x64' })).status).toBe(200);
      // A WebSocket that is open and silent is not asked for as often as one that is gone.
      expect(polls(standIn)).toBeGreaterThan(0);
      if (socket === 'refused') expect(polls(standIn)).toBeGreaterThan(4);
      expect(progress()).toBeUndefined();
      standIn.behave({ socket: 'normal' });
      expect((await draw()).status).toBe(200);
    },
    60_000,
  );
});
