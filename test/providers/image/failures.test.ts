/** What goes wrong with images, at the server or in a request: each has a clear error, and the next request is served. */
import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import { startUpstream } from '../../gateway/support/fake-upstream.ts';
import { until } from '../../gateway/support/gateway-fixture.ts';
import { SHAPES, writeCheckpoint } from '../../support/comfyui/checkpoints.ts';
import { createComfyWorld, failedWith } from '../../support/comfyui/comfy-gateway.ts';

const { at, start, startFront, draw, close } = createComfyWorld();

afterEach(close);

describe('what goes wrong at the server', () => {
  test('a model that it does not have names the command that gets it', async () => {
    await start();
    await rm(at().checkpoints, { recursive: true });
    await writeCheckpoint(path.join(at().checkpoints, 'other/a.safetensors'), SHAPES.sdxl);
    const [status, code, message] = failedWith(await draw());
    expect([status, code]).toEqual([502, 'image.failed']);
    expect(message).toMatch(
      /^The image server lacks a file of the model: .*; get it again \("svcctl model pull sdxl-turbo"\), then restart the slot$/,
    );
  });

  test('out of memory names a size that has half of the pixels', async () => {
    await start('sd-1.5', { behaviour: { failure: 'memory' } });
    expect(failedWith(await draw({ size: '1024x1024' }))).toEqual([
      502,
      'image.failed',
      'The device has too little memory for an image of 1024x1024; set "size" to "720x720" or less',
    ]);
    expect(failedWith(await draw({ n: 4 }))[2]).toBe(
      'The device has too little memory for 4 images at once of 512x512; set "n" to 1, and send several requests',
    );
  });

  test('a node that fails is named', async () => {
    const standIn = await start('sd-1.5', { behaviour: { failure: 'node' } });
    expect(failedWith(await draw())).toEqual([
      502,
      'image.failed',
      'Node "KSampler" of the image server failed: The size of tensor a (4) must match b (5); read the log of the slot',
    ]);
    standIn.behave({ failure: 'none' });
    expect((await draw()).status).toBe(200);
  });

  test('a message of the server with a path of its machine does not show it', async () => {
    await start('sd-1.5', { behaviour: { failure: 'load' } });
    expect(failedWith(await draw())[2]).toBe(
      'Node "CheckpointLoaderSimple" of the image server failed: ERROR: Could not detect model type of: (hidden); read the log of the slot',
    );
  });

  test('somebody else interrupts the image', async () => {
    const standIn = await start('sdxl-turbo', { behaviour: { stepMs: 100 } });
    const reply = draw({ steps: 10 });
    await until(() => standIn.queue().running.length === 1);
    await fetch(`http://127.0.0.1:${standIn.port}/interrupt`, { method: 'POST', body: '{}' });
    expect(failedWith(await reply)).toEqual([502, 'image.failed', 'The request was interrupted at the image server; send it again']);
  });

  test.each(['html', 'nothing', 'half', 'absent'] as const)('an image that is %s is no image, in each form', async (view) => {
    const standIn = await start('sdxl-turbo', { behaviour: { view } });
    for (const body of [{}, { response_format: 'b64_json' }, { n: 2 }]) {
      const [status, code, message] = failedWith(await draw(body));
      expect([status, code]).toEqual([502, 'image.failed']);
      expect(message).toMatch(/^[A-Z].{20,}[^.]$/);
    }
    // What has begun cannot become an error any more: it is cut off.
    const several = await draw({ n: 2, response_format: 'b64_json' }).catch(() => undefined);
    expect(several === undefined || several.cut || several.status === 502).toBe(true);
    expect(await readdir(path.join(at().dir, 'images')).catch(() => [])).toEqual([]);
    standIn.behave({ view: 'image' });
    expect((await draw()).status).toBe(200);
  });

  test('a server that is restarted has lost the job, and draws it again', async () => {
    const standIn = await start('sdxl-turbo', { behaviour: { stepMs: 300 } });
    const reply = draw({ steps: 10 });
    await until(() => standIn.queue().running.length === 1);
    await standIn.close();
    const next = await at().startStandIn();
    at().serve(next.port);
    expect((await reply).status).toBe(200);
    expect(next.workflows).toHaveLength(1);
  });

  test.each<[string, string, string]>([
    ['HTML', 'text/html', '<!doctype html><title>Login</title>'],
    ['nothing', 'application/json', ''],
    ['half of its JSON', 'application/json', '{"prompt_id":'],
    ['a list', 'application/json', '[]'],
  ])('a server that answers everything with %s does not keep anybody waiting', async (_what, type, body) => {
    const upstream = await startUpstream({ answer: (_request, res) => void res.writeHead(200, { 'content-type': type }).end(body) });
    (await startFront()).serve(upstream.port);
    const [status, code] = failedWith(await draw());
    expect([status, code]).toEqual([502, 'image.failed']);
    await upstream.kill();
  });
});

describe('a request that cannot be served', () => {
  test.each<[string, object, number, string]>([
    ['n of 0', { n: 0 }, 400, 'request.invalid'],
    ['n of 11', { n: 11 }, 400, 'request.invalid'],
    ['a size of 0', { size: '0x0' }, 422, 'image.size_unsupported'],
    ['an odd size', { size: '513x511' }, 422, 'image.size_unsupported'],
    ['an enormous size', { size: '100000x100000' }, 422, 'image.size_unsupported'],
    ['no size', { size: 'large' }, 400, 'request.invalid'],
    ['a seed of -1', { seed: -1 }, 400, 'request.invalid'],
    ['a seed of 2^64', { seed: '18446744073709551616' }, 400, 'request.invalid'],
    ['a seed of letters', { seed: 'abc' }, 400, 'request.invalid'],
    ['a prompt of 100 KB', { prompt: 'x'.repeat(100_000) }, 400, 'request.invalid'],
    ['a prompt of 1 MB', { prompt: 'x'.repeat(1_000_000) }, 400, 'request.invalid'],
    ['a prompt of 2 MB', { prompt: 'x'.repeat(2_000_000) }, 413, 'request.too_large'],
  ])('%s is refused, and never reaches the server', async (_what, body, status, code) => {
    const standIn = await start();
    const reply = await draw(body);
    expect(failedWith(reply).slice(0, 2)).toEqual([status, code]);
    expect(standIn.seen).toEqual([]);
    expect((await draw()).status).toBe(200);
  });
});
