/** Slots for speech on podman, with the real library and whisper.cpp in the toolbox image: they get another model while requests flow, and lose none. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import OpenAI, { toFile } from 'openai';
import { DEMO_TRANSCRIPT } from '../../toolboxes/demo/demo-listener.ts';
import { DEMO_SAMPLES_PER_CHARACTER } from '../../toolboxes/demo/demo-speaker.ts';
import { describeWithPodmanSlots, SPEECH_IMAGE } from '../support/require/require-podman.ts';
import { startRequestLoop } from '../support/request-loop.ts';
import { condition, isAnswering, startService, type Service, type SlotView } from '../support/service.ts';
import { writeSlowSpeaker, SLOW_SAMPLES_PER_CHARACTER } from '../support/speech/slow-speaker.ts';
import { encodeTinyWhisper, TINY_TRANSCRIPT } from '../support/speech/tiny-whisper.ts';
import { toneFile } from '../toolboxes/speech/sounds.ts';

const TOOLBOXES = ['stt', 'tts'].map((kind) => `[${kind}.cpu]\nimage = "${SPEECH_IMAGE}"\n`).join('');
/** Containers are named after their slots, and several suites use one podman. */
const LISTENER = `stt-${process.pid}`;
const SPEAKER = `tts-${process.pid}`;
const WHISPER = 'ggml-tiny.bin';
const SLOW = 'slow-speaker';
const TEXT = 'Hello there';
const SWAP_MS = 120_000;

const slotOf = (provider: 'stt' | 'tts', model: string, swap = 'auto'): string =>
  `provider = "${provider}"\n[model]\ndefault = "${model}"\nargs = ["--threads", "1"]\n[lifecycle]\nswap = "${swap}"\n`;
const secondsOf = (samplesPerCharacter: number): string => `${TEXT.length * samplesPerCharacter * 2} bytes`;

describeWithPodmanSlots('Speech on podman', () => {
  let service: Service;
  let openai: OpenAI;

  beforeAll(async () => {
    service = await startService({ runtime: 'podman', toolboxes: TOOLBOXES, speech: true });
    openai = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: 'none', maxRetries: 0 });
    await writeFile(path.join(service.modelsDir, WHISPER), encodeTinyWhisper());
    await writeSlowSpeaker(path.join(service.modelsDir, SLOW));
    await service.save(LISTENER, slotOf('stt', 'demo-listener'));
    await service.save(SPEAKER, slotOf('tts', 'demo-speaker'));
    for (const name of [LISTENER, SPEAKER]) await service.until(name, 'ready', isAnswering, 120_000);
  }, 300_000);
  afterAll(() => service.dispose(), 60_000);

  const recording = toneFile({ seconds: 2 });
  const asks = {
    stt: async () => (await openai.audio.transcriptions.create({ file: await toFile(recording, 'a.wav'), model: LISTENER })).text,
    tts: async () => {
      const answer = await openai.audio.speech.create({ model: SPEAKER, voice: 'alloy', input: TEXT, response_format: 'pcm' });
      return `${(await answer.arrayBuffer()).byteLength} bytes`;
    },
  };

  test.each([
    ['stt', 'blue-green', LISTENER, WHISPER, DEMO_TRANSCRIPT, TINY_TRANSCRIPT],
    ['stt', 'drain', LISTENER, 'demo-listener', TINY_TRANSCRIPT, DEMO_TRANSCRIPT],
    ['tts', 'blue-green', SPEAKER, SLOW, secondsOf(DEMO_SAMPLES_PER_CHARACTER), secondsOf(SLOW_SAMPLES_PER_CHARACTER)],
    ['tts', 'drain', SPEAKER, 'demo-speaker', secondsOf(SLOW_SAMPLES_PER_CHARACTER), secondsOf(DEMO_SAMPLES_PER_CHARACTER)],
  ] as const)(
    'a slot "%s" gets another model by %s without a failed or a cut answer',
    async (provider, swap, name, model, before, after) => {
      const loop = startRequestLoop(asks[provider], 3);
      try {
        await service.save(name, slotOf(provider, model, swap));
        const isSwapped = (seen: SlotView | undefined): boolean =>
          seen?.status.model === model && condition(seen, 'UpToDate')?.status === 'True';
        await service.until(name, 'up to date', isSwapped, SWAP_MS);
      } finally {
        await loop.end();
      }
      expect(loop.failures).toEqual([]);
      expect([...loop.answers].toSorted()).toEqual([before, after].toSorted());
      expect(await asks[provider]()).toBe(after);
    },
    SWAP_MS + 60_000,
  );
});
