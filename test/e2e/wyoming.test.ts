/** Home Assistant's protocol for speech on the real service with the real engine: the events of its README in the order of its README, and connections that mean harm. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readFile } from 'node:fs/promises';
import { DEMO_TRANSCRIPT } from '../../toolboxes/demo/demo-listener.ts';
import { DEMO_SAMPLES_PER_CHARACTER, DEMO_VOICES } from '../../toolboxes/demo/demo-speaker.ts';
import { freePort } from '../support/free-port.ts';
import { condition, startService, type Service } from '../support/service.ts';
import { connectWyoming, type WyomingClient } from '../support/wyoming-client.ts';
import { pitchOf, wavFile } from '../toolboxes/speech/sounds.ts';

const FORMAT = { rate: 16_000, width: 2, channels: 1 };
const SPOKEN = { rate: 24_000, width: 2, channels: 1 };
const BYTES_PER_CHARACTER = DEMO_SAMPLES_PER_CHARACTER * 2;
const TONE = wavFile([[2, 0.3]]).subarray(44);

let service: Service;
let port = 0;

beforeAll(async () => {
  port = await freePort();
  service = await startService({ runtime: 'process', speech: true, environment: { SVC_WYOMING: String(port), SVC_AUDIO_LIMIT: '1Mi' } });
  await service.save('stt', 'load = "on-demand"\n[model]\ndefault = "demo-listener"\n');
  await service.save('tts', 'load = "on-demand"\n[model]\ndefault = "demo-speaker"\n');
  for (const slot of ['stt', 'tts']) await service.until(slot, 'looked at', (seen) => condition(seen, 'SpecValid')?.status === 'True');
}, 180_000);
afterAll(() => service.dispose(), 60_000);

async function withClient<T>(use: (client: WyomingClient) => Promise<T>): Promise<T> {
  const client = await connectWyoming(port);
  try {
    return await use(client);
  } finally {
    client.socket.destroy();
  }
}

const sendSound = (client: WyomingClient, pcm: Buffer): void => {
  client.send('audio-start', FORMAT);
  for (let at = 0; at < pcm.length; at += 2048) client.send('audio-chunk', FORMAT, pcm.subarray(at, at + 2048));
  client.send('audio-stop');
};
const soundOf = (client: WyomingClient): Buffer =>
  Buffer.concat(client.events.filter(({ type }) => type === 'audio-chunk').map(({ payload }) => payload));

describe('as Home Assistant uses it', () => {
  test('describe: both services, their models, voices and languages', async () => {
    await withClient(async (client) => {
      client.send('describe');
      const { data } = await client.waitFor('info');
      const artifact = { attribution: { name: expect.any(String), url: expect.any(String) }, installed: true, version: expect.any(String) };
      expect(data).toMatchObject({
        asr: [
          {
            ...artifact,
            models: [{ ...artifact, name: 'stt', languages: expect.arrayContaining(['en', 'de']) }],
            supports_transcript_streaming: false,
          },
        ],
        tts: [
          {
            ...artifact,
            voices: [{ ...artifact, languages: expect.arrayContaining(['en']) }, {}, {}],
            supports_synthesize_streaming: true,
          },
        ],
      });
      expect(JSON.stringify(data)).toContain(DEMO_VOICES[2]);
    });
  }, 60_000);

  test('transcribe: loads the slot, and the transcript has the language', async () => {
    await withClient(async (client) => {
      client.send('transcribe', { language: 'en' });
      sendSound(client, TONE);
      expect((await client.waitFor('transcript')).data).toEqual({ text: DEMO_TRANSCRIPT, language: 'en' });
      // Home Assistant closes; others go on.
      sendSound(client, TONE);
      expect((await client.waitFor('transcript')).data).toEqual({ text: DEMO_TRANSCRIPT, language: 'en' });
    });
  }, 120_000);

  test('synthesize: loads the slot, and each voice sounds different', async () => {
    const pitches = await Promise.all(
      [DEMO_VOICES[0], DEMO_VOICES[2]].map(async (name) =>
        withClient(async (client) => {
          client.send('synthesize', { text: 'aaaa', voice: { name } });
          await client.waitFor('audio-stop');
          expect(client.events.map(({ type }) => type)).toEqual(['audio-start', ...soundChunks(client), 'audio-stop']);
          for (const { type, data } of client.events) if (type !== 'audio-stop') expect(data).toEqual(SPOKEN);
          expect(soundOf(client).length).toBe(4 * BYTES_PER_CHARACTER);
          return pitchOf(soundOf(client), SPOKEN.rate);
        }),
      ),
    );
    expect((pitches[1] ?? 0) / (pitches[0] ?? 1)).toBeCloseTo(4, 0);
  }, 120_000);

  test('synthesize in a stream: the first sentence is heard before the second is known, and all is one sound', async () => {
    await withClient(async (client) => {
      client.send('synthesize-start', { voice: { name: DEMO_VOICES[1] } });
      client.send('synthesize-chunk', { text: 'Hello. How ' });
      expect((await client.waitFor('audio-start')).data).toEqual(SPOKEN);
      await client.waitFor('audio-chunk');
      client.send('synthesize-chunk', { text: 'are you?' });
      client.send('synthesize', { text: 'Hello. How are you?' });
      client.send('synthesize-stop');
      await client.waitFor('synthesize-stopped');
      expect(client.events.map(({ type }) => type)).toEqual(['audio-start', ...soundChunks(client), 'audio-stop', 'synthesize-stopped']);
      expect(soundOf(client).length).toBe('Hello.How are you?'.length * BYTES_PER_CHARACTER);
    });
  }, 60_000);

  test('what was spoken is transcribed: a round trip with real sound', async () => {
    await withClient(async (client) => {
      client.send('synthesize', { text: 'There and back again.' });
      await client.waitFor('audio-stop');
      const pcm = soundOf(client);
      client.send('transcribe', { name: 'stt' });
      client.send('audio-start', SPOKEN);
      for (let at = 0; at < pcm.length; at += 4096) client.send('audio-chunk', SPOKEN, pcm.subarray(at, at + 4096));
      client.send('audio-stop');
      expect((await client.waitFor('transcript')).data).toEqual({ text: DEMO_TRANSCRIPT });
    });
  }, 60_000);

  test('silence, no sound at all, and an unknown event are no error', async () => {
    await withClient(async (client) => {
      client.send('run-satellite');
      sendSound(client, Buffer.alloc(64_000));
      expect((await client.waitFor('transcript')).data).toEqual({ text: '' });
      sendSound(client, Buffer.alloc(0));
      expect((await client.waitFor('transcript')).data).toEqual({ text: '' });
    });
  }, 60_000);
});

function soundChunks(client: WyomingClient): readonly string[] {
  return client.events.filter(({ type }) => type === 'audio-chunk').map(({ type }) => type);
}

describe('what means harm ends with an error and the connection, and nothing else', () => {
  const memoryOf = async (): Promise<number> =>
    Number(/VmRSS:\s*(\d+)/.exec(await readFile(`/proc/${service.pid()}/status`, 'utf8'))?.[1]) * 1024;

  test.each([
    ['no JSON', Buffer.from('GET / HTTP/1.1\r\n'), 'The line of an event is invalid'],
    ['no type', Buffer.from('{}\n'), 'The line of an event is invalid'],
    ['data of 1 GB', Buffer.from('{"type":"describe","data_length":1000000000}\n'), 'data_length'],
    ['a payload of 2 GB', Buffer.from('{"type":"audio-chunk","payload_length":2000000000}\n'), 'payload_length'],
    ['a negative length', Buffer.from('{"type":"describe","data_length":-1}\n'), 'data_length'],
    ['half a byte', Buffer.from('{"type":"describe","payload_length":0.5}\n'), 'payload_length'],
    ['a length as text', Buffer.from('{"type":"describe","data_length":"7"}\n'), 'data_length'],
    ['data that is no JSON', Buffer.from('{"type":"describe","data_length":3}\nabc'), 'not a JSON object'],
    [
      'deep data',
      Buffer.from(`{"type":"describe","data":{"a":${'['.repeat(5000)}${']'.repeat(5000)}}}\n`),
      'The line of an event is invalid',
    ],
    ['a wrong field', Buffer.from('{"type":"synthesize","data":{"text":7}}\n'), 'The data of the event is invalid'],
    ['8-bit sound', Buffer.from('{"type":"audio-start","data":{"rate":16000,"width":1,"channels":1}}\n'), 'Send 16-bit samples'],
    ['a piece of a text without its begin', Buffer.from('{"type":"synthesize-chunk","data":{"text":"a"}}\n'), 'synthesize-start'],
    ['an unknown voice', Buffer.from('{"type":"synthesize","data":{"text":"Hello","voice":{"name":"nobody"}}}\n'), 'nobody'],
  ])(
    '%s',
    async (_, bytes, message) => {
      await withClient(async (client) => {
        client.socket.write(bytes);
        expect((await client.waitFor('error')).data).toMatchObject({ text: expect.stringContaining(message), code: expect.any(String) });
        await client.closed();
      });
    },
    30_000,
  );

  test('a line of a gigabyte without an end is not kept', async () => {
    const before = await memoryOf();
    await withClient(async (client) => {
      const piece = Buffer.alloc(1024 * 1024, 'x');
      let sent = 0;
      while (!client.socket.destroyed && sent < 1024) {
        if (!client.socket.write(piece)) await new Promise((resolve) => setTimeout(resolve, 2));
        sent += 1;
        if (client.events.length > 0) break;
      }
      expect((await client.waitFor('error')).data).toMatchObject({ text: expect.stringContaining('The line of an event has more than') });
      await client.closed();
    });
    expect((await memoryOf()) - before).toBeLessThan(64 * 1024 * 1024);
  }, 60_000);

  test('a recording over the limit', async () => {
    await withClient(async (client) => {
      client.send('audio-start', FORMAT);
      for (let sent = 0; sent < 20; sent += 1) client.send('audio-chunk', FORMAT, Buffer.alloc(64 * 1024));
      expect((await client.waitFor('error')).data).toMatchObject({ code: 'request.too_large' });
      await client.closed();
    });
  }, 30_000);

  test('more connections than it takes are closed, and it still answers afterwards', async () => {
    const clients = await Promise.all(Array.from({ length: 64 }, async () => connectWyoming(port)));
    const more = await connectWyoming(port);
    await more.closed();
    for (const client of clients) client.socket.destroy();
    for (;;) {
      const seen = await withClient(async (client) => {
        client.send('describe');
        return client.waitFor('info').catch(() => undefined);
      });
      if (seen !== undefined) break;
    }
  }, 30_000);
});
