/**
 * A recording of hours, half of it silence and half of it noise, with the real library. `npm run test:long -- speech` takes three hours of sound; SVC_TEST_SECONDS sets another
 * length. What memory may grow by does not depend on it.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { DEMO_TRANSCRIPT } from '../../../toolboxes/demo/demo-listener.ts';
import { writeDemoSpeech } from '../../../toolboxes/demo/demo-models.ts';
import { startSpeechServer, untilHealth, type RunningSpeechServer } from './running-speech-server.ts';
import { wavHeadOf } from './sounds.ts';

const RATE = 16_000;
const SECONDS = Number(process.env['SVC_TEST_SECONDS'] ?? 3600);
/** Silence and noise take turns. */
const PART_SECONDS = 100;
/** All samples of an hour would take 230 MB, or 115 MB as they are in the file. */
const MOST_GROWTH_BYTES = 80_000_000;
const BOUNDARY = 'x';
/** What the server keeps before and after the sound. */
const MARGIN_SECONDS = 0.5;

interface Answer {
  readonly duration: number;
  readonly text: string;
  readonly segments: readonly { readonly start: number; readonly end: number }[];
}

describe(`The speech server, with ${SECONDS} s of silence and noise,`, () => {
  let root = '';
  let server: RunningSpeechServer;

  beforeAll(async () => {
    root = await mkdtemp(path.join(tmpdir(), 'svc-long-'));
    await writeDemoSpeech(root);
    const flags = ['--ffmpeg', 'none', '--limit', String(2 ** 30)];
    server = await startSpeechServer('stt', path.join(root, 'demo', 'demo-listener'), { flags, temporary: root });
    await untilHealth(server, 'ready');
  }, 180_000);
  afterAll(async () => {
    expect(await server.stop()).toBe(0);
    await rm(root, { recursive: true });
  });

  const memory = async (): Promise<number> => {
    const pids = [server.pid, await server.enginePid()];
    const texts = await Promise.all(pids.map(async (pid) => readFile(`/proc/${pid}/status`, 'utf8')));
    return texts.reduce((sum, text) => sum + Number(/VmRSS:\s*(\d+)/.exec(text)?.[1]) * 1024, 0);
  };

  test('needs no more memory than for a short one, hears the noise, and leaves out the silence', async () => {
    // What the allocators keep grows with the first ones.
    for (let run = 0; run < 3; run += 1) await send(server.url, 8 * PART_SECONDS);
    const before = await memory();
    let peak = before;
    let pending = true;
    const answering = send(server.url, SECONDS).finally(() => (pending = false));
    while (pending) {
      peak = Math.max(peak, await memory());
      await Promise.race([answering.catch(() => undefined), sleep(100)]);
    }
    const { duration, text, segments } = await answering;
    expect(peak - before).toBeLessThan(MOST_GROWTH_BYTES);
    expect(duration).toBe(SECONDS);
    expect(text.split(DEMO_TRANSCRIPT)).toHaveLength(segments.length + 1);
    const noise = Math.floor(SECONDS / PART_SECONDS / 2);
    const covered = Array.from({ length: noise }, (_, index) => {
      const from = (2 * index + 1) * PART_SECONDS;
      const inside = segments.filter(({ start, end }) => start >= from - MARGIN_SECONDS && end <= from + PART_SECONDS + MARGIN_SECONDS);
      return inside.reduce((sum, { start, end }) => sum + end - start, 0);
    });
    for (const seconds of covered) expect(Math.abs(seconds - PART_SECONDS)).toBeLessThan(2 * MARGIN_SECONDS);
    // No segment is anywhere else.
    const all = segments.reduce((sum, { start, end }) => sum + end - start, 0);
    expect(all).toBeCloseTo(
      covered.reduce((sum, seconds) => sum + seconds, 0),
      3,
    );
  }, 600_000);
});

async function send(url: string, seconds: number): Promise<Answer> {
  const answered = Promise.withResolvers<Answer>();
  const headers = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` };
  const outgoing = request(`${url}/v1/audio/transcriptions`, { method: 'POST', headers }, (response) => {
    let text = '';
    response.setEncoding('utf8').on('data', (part: string) => (text += part));
    response.on('end', () => answered.resolve(JSON.parse(text)));
  });
  await pipeline(formOf(seconds), outgoing);
  return answered.promise;
}

function* formOf(seconds: number): Generator<Buffer> {
  const field = (disposition: string): string => `--${BOUNDARY}\r\ncontent-disposition: form-data; ${disposition}\r\n\r\n`;
  yield Buffer.from(`${field('name="response_format"')}verbose_json\r\n${field('name="file"; filename="a.wav"')}`);
  yield wavHeadOf({ rate: RATE, bytes: seconds * RATE * 2 });
  const silence = Buffer.alloc(RATE * 2);
  const noise = Buffer.from(Int16Array.from({ length: RATE }, noiseAt).buffer);
  for (let second = 0; second < seconds; second += 1) yield Math.floor(second / PART_SECONDS) % 2 === 0 ? silence : noise;
  yield Buffer.from(`\r\n--${BOUNDARY}--\r\n`);
}

/** The same numbers each time, without a pattern that can be heard: a linear congruential generator. */
function noiseAt(_: unknown, index: number): number {
  const value = Math.imul(index + 1, 1_664_525) + 1_013_904_223;
  return (Math.imul(value ^ (value >>> 15), 0x85ebca6b) >> 16) / 8;
}
