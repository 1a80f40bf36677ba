/** `"stream": true`: previews and images as the events of OpenAI's API. */
import { afterEach, describe, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { createComfyWorld, failedWith } from '../../support/comfyui/comfy-gateway.ts';
import { readPng } from '../../support/comfyui/png.ts';

const { at, start, draw, close } = createComfyWorld();

afterEach(close);

/** What the package of OpenAI makes of the stream. */
async function eventsOf(body: object) {
  const client = new OpenAI({ baseURL: `http://127.0.0.1:${at().gateway.port}/v1`, apiKey: 'none', maxRetries: 0 });
  const stream = await client.images.generate({ prompt: 'a red fox', model: 'img', stream: true, ...body });
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

const shown = (events: readonly { readonly type: string }[]) => events.map(({ type }) => type.replace('image_generation.', ''));

describe('a stream', () => {
  test.each([
    [3, 10, ['partial_image', 'partial_image', 'partial_image', 'completed']],
    [1, 10, ['partial_image', 'completed']],
    [0, 10, ['completed']],
    // Fewer than are wanted, if there are not so many steps before the last one.
    [3, 2, ['partial_image', 'completed']],
    [3, 1, ['completed']],
  ])('with %d previews of %d steps', async (wanted, steps, types) => {
    await start();
    const events = await eventsOf({ partial_images: wanted, steps, size: '128x64' });
    expect(shown(events)).toEqual(types);
    const partial = events.filter((event) => event.type === 'image_generation.partial_image');
    expect(partial.map(({ partial_image_index: index }) => index)).toEqual(partial.map((_event, index) => index));
    for (const { b64_json: text, output_format: format, size } of partial) {
      expect(Buffer.from(text, 'base64').subarray(0, 3).toString('hex')).toBe('ffd8ff');
      expect([format, size]).toEqual(['jpeg', '128x64']);
    }
    const last = events.at(-1);
    expect(last).toMatchObject({ type: 'image_generation.completed', output_format: 'png', size: '128x64', usage: { total_tokens: 0 } });
    expect(readPng(Buffer.from(last?.b64_json ?? '', 'base64'))).toEqual({ width: 128, height: 64 });
  });

  test('of several images has an event for each of them', async () => {
    await start();
    const events = await eventsOf({ n: 3, steps: 4, size: '64x64', partial_images: 1, output_format: 'webp' });
    expect(shown(events)).toEqual(['partial_image', 'completed', 'completed', 'completed']);
    expect(new Set(events.map(({ b64_json: text }) => text)).size).toBe(4);
  });

  test('has no previews, and its image, where the WebSocket is missing', async () => {
    await start('sdxl-turbo', { behaviour: { socket: 'refused' } });
    expect(shown(await eventsOf({ partial_images: 2, steps: 10 }))).toEqual(['completed']);
  });

  test('is named as one, and has the names of its events', async () => {
    await start();
    const reply = await draw({ stream: true, steps: 2, partial_images: 1, size: '64x64' });
    expect([reply.status, reply.headers['content-type']]).toEqual([200, 'text/event-stream']);
    const names = reply.text.split('\n').filter((line) => line.startsWith('event: '));
    expect(names).toEqual(['event: image_generation.partial_image', 'event: image_generation.completed']);
    expect(reply.text.endsWith('\n\n')).toBe(true);
  });

  test('that fails before its first event is an error like any other', async () => {
    await start('sdxl-turbo', { behaviour: { failure: 'memory' } });
    expect(failedWith(await draw({ stream: true, partial_images: 2 })).slice(0, 2)).toEqual([502, 'image.failed']);
  });

  test('that fails after its first event ends with an error, which the package of OpenAI throws', async () => {
    await start('sdxl-turbo', { behaviour: { view: 'half' } });
    await expect(eventsOf({ partial_images: 1, steps: 4 })).rejects.toThrow('The image server did not send a complete image');
  });
});
