/** A gateway whose only slot translates its requests, and the server of that slot. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Translate } from '../../../src/providers/translation.ts';
import { publish, slotName } from './board-fixture.ts';
import { errorOf, post, type Reply } from './client.ts';
import { sendJson, startUpstream, type Answer, type FakeUpstream } from './fake-upstream.ts';
import { startGateway, until, type FixtureOptions, type GatewayFixture } from './gateway-fixture.ts';

export const TOY = slotName('toy');
export const TOY_CAPABILITIES = ['chat', 'speech', 'image', 'transcription'] as const;
/** A path whose bodies are JSON of any shape. */
export const IMAGES = '/v1/images/generations';

export interface TranslationFixture {
  readonly gateway: GatewayFixture;
  readonly upstream: FakeUpstream;
  serve(port: number, workload?: string): void;
  speak(more?: object): Promise<Reply>;
  /** Waits until nothing is held, and closes everything. Returns what is left in use, which is nothing. */
  close(): Promise<object>;
}

export async function startTranslation(
  run: Translate,
  answer: Answer,
  settings: FixtureOptions['settings'] = {},
): Promise<TranslationFixture> {
  const state = await mkdtemp(path.join(tmpdir(), 'svc-translation-'));
  const gateway = await startGateway({
    settings: { SVC_STATE_DIR: state, ...settings },
    provider: { infer: () => ({ kind: 'translate', run }) },
  });
  const upstream = await startUpstream({ answer });
  const serve = (port: number, workload = 'w'): void =>
    void publish(gateway.board, { name: 'toy', capabilities: TOY_CAPABILITIES, targets: [{ workload, port }] });
  serve(upstream.port);
  return {
    gateway,
    upstream,
    serve,
    speak: (more = {}) => post(gateway.port, IMAGES, JSON.stringify({ model: 'toy', input: 'Hi', ...more })),
    async close() {
      await until(() => gateway.traffic.ofSlot(TOY).inFlight === 0);
      await gateway.close();
      await upstream.kill();
      await rm(state, { recursive: true });
      const { requests, bufferedBytes, spooledBytes } = gateway.gateway.load();
      return { ...gateway.traffic.ofSlot(TOY), requests, bufferedBytes, spooledBytes };
    },
  };
}

export const NOTHING_LEFT = { inFlight: 0, parked: 0, requests: 0, bufferedBytes: 0, spooledBytes: 0 };

/** A server that repeats what it is to say. */
export const says: Answer = ({ body }, res) => sendJson(res, 200, { said: `You said ${JSON.parse(body.toString()).text}` });

export const failedWith = (reply: Reply): unknown[] => [reply.status, errorOf(reply.text).code, errorOf(reply.text).origin];
