/** The gateway with a store of voices, a slot that imitates them and one with voices of its own, in front of a stand-in for the speech server. */
import { expect } from '@jest/globals';
import OpenAI, { toFile } from 'openai';
import { createAuditTrail } from '../../../src/api/manage/audit-trail.ts';
import { isTable } from '../../../src/schema/words/key-case.ts';
import type { VoiceStore } from '../../../src/schema/slot/voice-store.ts';
import { openVoices } from '../../support/open-voices.ts';
import { startSpeechDouble, type SpeechDouble } from '../../support/speech/speech-double.ts';
import { toneFile, wavFile } from '../../toolboxes/speech/sounds.ts';
import { publish, slotName } from './board-fixture.ts';
import { post, type Reply } from './client.ts';
import { FORM_TYPE, formOf, type FormPart } from './forms.ts';
import { startGateway, type FixtureOptions, type GatewayFixture } from './gateway-fixture.ts';

export const VOICES = '/v1/audio/voices';
export const SPEECH = '/v1/audio/speech';
export const TONE = toneFile({ seconds: 2 });
/** The largest recording that is accepted. */
export const LONGEST = wavFile([[30, 0.3]], { rate: 50_000 }).subarray(0, 3_000_000);

export const IMITATOR = { name: 'tts', model: 'pocket', capabilities: ['speech'], voices: [], contents: { clones: true } } as const;
export const READER = { name: 'reader', model: 'kokoro', capabilities: ['speech'], voices: [{ id: 'otto' }], contents: {} } as const;

export const named = (content: string): FormPart => ({ name: 'name', content });
export const sample = (content: Buffer | string = TONE): FormPart => ({ name: 'audio_sample', fileName: 'a.wav', content });

export interface RestartOptions extends FixtureOptions {
  /** What the store does instead of writing and reading files. */
  readonly broken?: Partial<VoiceStore>;
}

export interface VoiceFixture {
  readonly dir: string;
  readonly server: SpeechDouble;
  /** What the audit trail says. */
  readonly audited: readonly string[];
  gateway: GatewayFixture;
  client: OpenAI;
  /** Starts the gateway again with the same files. */
  restart(options?: RestartOptions): Promise<void>;
  /** Both slots are ready. */
  serve(): void;
  store(name: string, sound?: Buffer): Promise<OpenAI.Audio.Voice>;
  listed(query?: string): Promise<readonly Record<string, unknown>[]>;
  /** Sends a form to store a voice. */
  send(parts: readonly FormPart[], headers?: Readonly<Record<string, string>>): Promise<Reply>;
  say(body: object): Promise<Reply>;
  /** The fields of the last request that reached the server. */
  received(): Record<string, unknown>;
  /** Fails if the gateway had a fault, or still works on a request or keeps a part of one; then ends everything. */
  closeAtRest(): Promise<void>;
}

/** At most two voices can be stored. */
export async function startVoices(): Promise<VoiceFixture> {
  const files = await openVoices(2);
  const server = await startSpeechDouble();
  const audited: string[] = [];

  async function start({ broken = {}, ...options }: RestartOptions = {}): Promise<GatewayFixture> {
    const trail = createAuditTrail({
      log: { info: (_fields, message) => void audited.push(message) },
      note: () => undefined,
      keep: () => undefined,
      wallNow: () => 0,
    });
    return await startGateway({
      voices: trail.voices({ ...files.open(), ...broken }),
      actAs: trail.actAs,
      provider: { imitates: ({ contents }) => isTable(contents) && contents['clones'] === true },
      ...options,
      settings: { SVC_STATE_DIR: files.dir, ...options.settings },
    });
  }
  const clientOf = ({ url }: GatewayFixture): OpenAI => new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
  const gateway = await start();
  const fixture: VoiceFixture = {
    dir: files.dir,
    server,
    audited,
    gateway,
    client: clientOf(gateway),
    async restart(options) {
      await fixture.gateway.close();
      fixture.gateway = await start(options);
      fixture.client = clientOf(fixture.gateway);
      fixture.serve();
    },
    serve() {
      const targets = [{ workload: 'w', port: server.port }];
      publish(fixture.gateway.board, { ...IMITATOR, targets }, { ...READER, targets });
    },
    async store(name, sound = TONE) {
      const file = await toFile(sound, 'a.wav', { type: 'audio/wav' });
      return await fixture.client.audio.voices.create({ name, consent: 'cons_1', audio_sample: file });
    },
    listed: async (query = '') => JSON.parse(await (await fetch(fixture.gateway.url + VOICES + query)).text()).voices,
    send: async (parts, headers = {}) =>
      post(fixture.gateway.port, VOICES, formOf(parts), { headers: { 'content-type': FORM_TYPE, ...headers } }),
    say: async (body) => post(fixture.gateway.port, SPEECH, JSON.stringify({ model: 'tts', input: 'Hello', ...body })),
    received: () => JSON.parse(server.seen.at(-1)?.body.toString('utf8') ?? '{}'),
    async closeAtRest() {
      expect(fixture.gateway.faults).toEqual([]);
      for (const { name } of [IMITATOR, READER]) expect(fixture.gateway.traffic.ofSlot(slotName(name))).toEqual({ inFlight: 0, parked: 0 });
      expect(fixture.gateway.gateway.load()).toMatchObject({ requests: 0, bufferedBytes: 0, spooledBytes: 0 });
      await fixture.gateway.close();
      await server.kill();
      await files.remove();
    },
  };
  fixture.serve();
  return fixture;
}
