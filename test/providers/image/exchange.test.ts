/** The exchange with ComfyUI through the gateway, against a stand-in that checks, queues and answers as the real one does. */
import { afterEach, describe, expect, test } from '@jest/globals';
import { post } from '../../gateway/support/client.ts';
import { until } from '../../gateway/support/gateway-fixture.ts';
import { createComfyWorld, GENERATIONS } from '../../support/comfyui/comfy-gateway.ts';
import type { Comfy } from '../../support/comfyui/comfy-server.ts';
import { readPng } from '../../support/comfyui/png.ts';

const { at, start, draw, close } = createComfyWorld();

afterEach(close);

const asksToForget = ({ seen }: Comfy): boolean => seen.some(({ method, path }) => method === 'POST' && path === '/history');

describe('an image', () => {
  test('is answered as a URL of the cache, with `_hal0`', async () => {
    await start();
    const reply = await draw({ size: '256x128' });
    const answer = JSON.parse(reply.text);
    expect([reply.status, reply.headers['content-type']]).toEqual([200, 'application/json']);
    expect(answer).toEqual({
      created: expect.any(Number),
      data: [{ url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/api\/images\/cache\/[0-9a-f-]{36}\.png$/) }],
      _hal0: { workflow: 'sdxl-turbo', checkpoint: 'sd_xl_turbo_1.0_fp16.safetensors' },
    });
    expect(Math.abs(answer.created - Date.now() / 1000)).toBeLessThan(600);
    expect(readPng(await at().cachedImage(answer.data[0].url))).toEqual({ width: 256, height: 128 });
  });

  test('is answered in base64', async () => {
    await start();
    const answer = JSON.parse((await draw({ response_format: 'b64_json' })).text);
    expect(readPng(Buffer.from(answer.data[0].b64_json, 'base64'))).toEqual({ width: 512, height: 512 });
    expect(Object.keys(answer.data[0])).toEqual(['b64_json']);
  });

  test.each([1, 2, 4, 10])('%d of them come in one answer, in their order, in both forms', async (n) => {
    await start();
    const inline = JSON.parse((await draw({ n, size: '64x64', response_format: 'b64_json', seed: 5 })).text);
    const images = inline.data.map(({ b64_json: text }: { readonly b64_json: string }) => text);
    expect(new Set(images).size).toBe(n);
    expect(inline._hal0.workflow).toBe('sdxl-turbo');
    const byUrl = JSON.parse((await draw({ n, size: '64x64', seed: 5 })).text);
    const same = await Promise.all(
      byUrl.data.map(async ({ url }: { readonly url: string }) => (await at().cachedImage(url)).toString('base64')),
    );
    expect(same).toEqual(images);
  });

  test.each([
    ['jpeg', 'ffd8ff'],
    ['webp', '52494646'],
    ['png', '89504e47'],
  ])('comes as %s where a client asks for it', async (format, magic) => {
    await start();
    for (const n of [1, 2]) {
      const answer = JSON.parse((await draw({ n, response_format: 'b64_json', output_format: format })).text);
      for (const { b64_json: text } of answer.data) expect(Buffer.from(text, 'base64').toString('hex').startsWith(magic)).toBe(true);
    }
  });

  test('has nothing of the prompt in its bytes, as the server is started without metadata', async () => {
    const standIn = await start();
    const answer = JSON.parse((await draw({ response_format: 'b64_json' })).text);
    expect(Buffer.from(answer.data[0].b64_json, 'base64').toString('latin1')).not.toContain('fox');
    expect(standIn.workflows[0]).toContain('fox');
  });

  test('is drawn again for the same seed, in a file of its own', async () => {
    const standIn = await start();
    const [first, second] = [await draw({ seed: 1, response_format: 'b64_json' }), await draw({ seed: 1, response_format: 'b64_json' })];
    expect(JSON.parse(first.text).data).toEqual(JSON.parse(second.text).data);
    const prefixes = standIn.workflows.map((text) => JSON.parse(text).prompt['9'].inputs.filename_prefix);
    expect(new Set(prefixes).size).toBe(2);
  });

  test('has another seed each time that a client names none', async () => {
    const standIn = await start();
    await draw();
    await draw();
    expect(new Set(standIn.workflows.map((text) => /"noise_seed":(\d+)/.exec(text)?.[1])).size).toBe(2);
  });

  test('has the exact seed beyond 2^53 when it reaches the server', async () => {
    const standIn = await start();
    const reply = await post(at().gateway.port, GENERATIONS, '{"prompt":"x","seed":18446744073709551615}');
    expect(reply.status).toBe(200);
    expect(standIn.workflows[0]).toContain('"noise_seed":18446744073709551615');
  });

  test('is forgotten by the server once it has been fetched, with its prompt', async () => {
    const standIn = await start();
    await draw();
    await until(() => asksToForget(standIn));
  });

  test('is answered before the server has forgotten it', async () => {
    const standIn = await start('sdxl-turbo', { behaviour: { forgets: 'never' } });
    expect((await draw()).status).toBe(200);
    await until(() => asksToForget(standIn));
  });
});

test('several images in base64 are never in memory together: they take none of the memory for bodies', async () => {
  const noteBytes = 1_500_000;
  await start('sdxl-turbo', { behaviour: { noteBytes } }, { SVC_BUFFER_LIMIT: '1Mi' });
  const reply = await draw({ n: 4, size: '64x64', response_format: 'b64_json' });
  const { data } = JSON.parse(reply.text);
  expect(data).toHaveLength(4);
  for (const { b64_json: text } of data) {
    const bytes = Buffer.from(text, 'base64');
    expect(bytes.length).toBeGreaterThan(noteBytes);
    expect(readPng(bytes)).toEqual({ width: 64, height: 64 });
  }
  expect(JSON.parse((await draw({ n: 4, size: '64x64' })).text).data).toHaveLength(4);
});
