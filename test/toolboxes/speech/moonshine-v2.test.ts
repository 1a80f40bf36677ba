/** Moonshine in its second layout on the real library: what it does not hear is never answered with silence. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { encodeMoonshineV2, V2_TRANSCRIPT } from '../../support/speech/moonshine-v2-model.ts';
import { startSpeechServer, transcribe, untilHealth, type RunningSpeechServer } from './running-speech-server.ts';
import { spokenFile, wavFile } from './sounds.ts';

let root = '';
const servers: RunningSpeechServer[] = [];

async function serve(name: string, deaf: boolean): Promise<RunningSpeechServer> {
  const model = path.join(root, name);
  await mkdir(model);
  for (const [file, bytes] of Object.entries(encodeMoonshineV2({ deaf }))) await writeFile(path.join(model, file), bytes);
  const server = await startSpeechServer('stt', model, { flags: ['--ffmpeg', 'none'] });
  servers.push(server);
  await untilHealth(server, 'ready');
  return server;
}

let hearing: RunningSpeechServer;
let deaf: RunningSpeechServer;
beforeAll(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'svc-moonshine-'));
  [hearing, deaf] = [await serve('hearing', false), await serve('deaf', true)];
}, 180_000);
afterAll(async () => {
  for (const server of servers) await server.stop();
  await rm(root, { recursive: true });
});

test('20 seconds of speech are heard in pieces of at most 8 seconds: the library returns nothing for longer ones', async () => {
  const { status, text } = await transcribe(hearing, spokenFile(20), { response_format: 'verbose_json' });
  expect(status).toBe(200);
  const { segments, ...whole }: { segments: readonly { start: number; end: number; text: string }[]; text: string } = JSON.parse(text);
  expect(segments.length).toBeGreaterThanOrEqual(3);
  expect(whole.text).toBe(segments.map(() => V2_TRANSCRIPT).join(' '));
  for (const { start, end } of segments) expect(end - start).toBeLessThanOrEqual(8);
  expect(segments.at(0)?.start).toBe(0);
  expect(segments.at(-1)?.end).toBe(20);
});

test('an empty result for speech is an error that says where the speech is', async () => {
  const { status, text } = await transcribe(deaf, spokenFile(3));
  expect({ status, body: JSON.parse(text) }).toMatchObject({
    status: 422,
    body: { error: { code: 'audio.not_understood', param: 'file', message: expect.stringContaining('from 0.0 s to 3.0 s') } },
  });
});

test.each([
  ['silence', wavFile([[5, 0]])],
  ['a steady tone', wavFile([[5, 0.3]])],
  [
    'a click',
    wavFile([
      [2, 0],
      [0.1, 0.5],
      [2, 0],
    ]),
  ],
] as const)('an empty result for %s is an empty text', async (_, sound) => {
  const { status, text } = await transcribe(deaf, sound);
  expect({ status, body: JSON.parse(text) }).toMatchObject({ status: 200, body: { text: '' } });
});

test('in a stream, the error is an event after what was heard', async () => {
  const { text } = await transcribe(deaf, spokenFile(3), { stream: 'true' });
  expect(text).toContain('"code":"audio.not_understood"');
});
