/** A slot for images becomes ready only when its server has drawn with the model, against the stand-in for ComfyUI. */
import { afterEach, expect, test } from '@jest/globals';
import { askReadiness } from '../../../src/providers/image/image.ts';
import type { ProbeIo } from '../../../src/providers/provider.ts';
import { ModelId } from '../../../src/schema/words/names.ts';
import { createComfyWorld, IMG } from '../../support/comfyui/comfy-gateway.ts';
import type { Comfy } from '../../support/comfyui/comfy-server.ts';
import { specOf } from '../../support/providers/odd-models.ts';

const { at, start, close } = createComfyWorld();

afterEach(close);

const io: ProbeIo = {
  async request({ host, port }, { method, path, body }) {
    const reply = await fetch(`http://${host}:${port}${path}`, { method, ...(typeof body === 'string' ? { body } : {}) });
    return { status: reply.status, body: await reply.text() };
  },
};

const ask = async ({ port }: Comfy, through = io) =>
  askReadiness({ host: '127.0.0.1', port }, through, { name: IMG, spec: specOf('image'), model: at().model }, new AbortController().signal);

/** Asks as the controller does, until there is a verdict. */
async function verdictOf(standIn: Comfy) {
  for (;;) {
    const health = await ask(standIn);
    if (health.kind !== 'loading') return health;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test('a model is loaded by one small image, drawn once however often is asked', async () => {
  const standIn = await start('sd-1.5', { behaviour: { paused: true } });
  expect(await ask(standIn)).toMatchObject({ kind: 'loading', message: expect.stringContaining('small image') });
  expect(await ask(standIn)).toMatchObject({ kind: 'loading' });
  standIn.behave({ paused: false });
  expect(await verdictOf(standIn)).toEqual({ kind: 'passing' });
  expect(await ask(standIn)).toEqual({ kind: 'passing' });
  expect(standIn.workflows).toHaveLength(1);
  expect(standIn.workflows[0]).toMatch(/"steps":1,.*"width":64,"height":64,"batch_size":1.*"PreviewImage"/);
});

test('an image that is drawn between two questions is not drawn again', async () => {
  const standIn = await start('sd-1.5', { behaviour: { paused: true } });
  await ask(standIn);
  let asked = '';
  const late: ProbeIo = {
    async request(endpoint, request) {
      if (request.path.startsWith('/history/')) asked = request.path;
      if (request.path !== '/queue') return await io.request(endpoint, request);
      standIn.behave({ paused: false });
      for (;;) {
        const history = await io.request(endpoint, { ...request, path: asked });
        const queue = await io.request(endpoint, request);
        if (history.body !== '{}') return queue;
      }
    },
  };
  expect(await ask(standIn, late)).toEqual({ kind: 'passing' });
  expect(standIn.workflows).toHaveLength(1);
});

test('a checkpoint that cannot be loaded is found before the first client', async () => {
  const standIn = await start('sd-1.5', { behaviour: { failure: 'load' } });
  expect(await verdictOf(standIn)).toEqual({
    kind: 'failing',
    message:
      'The server cannot draw with "sd-1.5": node "CheckpointLoaderSimple" failed: ERROR: Could not detect model type of: (hidden); get the model again, or choose another one',
  });
});

test('so is a device that is too small, and a server that is too old for the family', async () => {
  const small = await start('sdxl-turbo', { behaviour: { failure: 'memory' } });
  expect(await verdictOf(small)).toMatchObject({ kind: 'failing', message: expect.stringContaining('HIP out of memory') });
  const model = { ...at().model, id: ModelId.parse('flux-2'), contents: { family: 'flux-2-klein-4b' } };
  const slot = { name: IMG, spec: specOf('image'), model };
  const old = await askReadiness({ host: '127.0.0.1', port: small.port }, io, slot, new AbortController().signal);
  expect(old).toMatchObject({
    kind: 'failing',
    message: expect.stringMatching(/refuses the workflow .*EmptyFlux2LatentImage does not exist.*; update ComfyUI/),
  });
});

test('the version of the server makes no difference for what both draw', async () => {
  const standIn = await start('sd-1.5', { version: '0.38.1' });
  expect(await verdictOf(standIn)).toEqual({ kind: 'passing' });
});
