/** The service that the screenshots show: demo models in slots of every state, a download that goes on, and requests that have been made. */
import { encodeDemoModel } from '../../toolboxes/demo/demo-models.ts';
import { startFakeHub } from '../../test/support/hub/fake-hub.ts';
import { bufferFile, virtualFile } from '../../test/support/hub/virtual-file.ts';
import { isAnswering, pause, startService, type Service } from '../../test/support/service.ts';

export interface PictureWorld {
  readonly url: string;
  /** Uses the slots until the signal is aborted, so that rates and curves have values. */
  traffic(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

const CHAT = 'provider = "gguf"\nbackend = "cpu"\n';
const LARGE = 'hf:demo/coder-24b-GGUF:Q4_K_M';
const SLOTS: Readonly<Record<string, string>> = {
  primary: `${CHAT}\n[model]\n# Answers questions of the team.\ndefault = "demo-fox"\n\n[price]\ncurrency = "EUR"\noutput_tokens = 0.6\nprompt_tokens = 0.1\n`,
  embed: `${CHAT}[model]\ndefault = "demo-embed"\n`,
  agent: `${CHAT}load = "on-demand"\n[model]\ndefault = "demo-owl"\n[lifecycle]\nidle_timeout = "10m"\n`,
  coder: `${CHAT}[model]\ndefault = "${LARGE}"\n`,
  vision: `${CHAT}[model]\ndefault = "demo-fox"\n[resources]\nmemory = "900Gi"\n`,
  tts: '[model]\ndefault = "demo-speaker"\n',
  stt: '[model]\ndefault = "demo-listener"\n',
  img: 'enabled = false\nprovider = "comfyui"\nbackend = "cuda"\n[model]\ndefault = "sdxl-turbo"\n',
};
const READY = ['primary', 'embed', 'tts', 'stt'];
const REPO = { commit: 'c'.repeat(40), license: 'apache-2.0', task: 'text-generation' };
const QUESTIONS = ['Who are you?', 'Which animal is quick?', 'What does the fox do?'];
const LARGE_BYTES = 300 * 2 ** 20;
/** The download lasts longer than the pictures. */
const BYTES_PER_SECOND = 150_000;
/** Leaves the processor to the pictures. */
const TRAFFIC_PAUSE_MS = 100;
const SETTLED_WITHIN_MS = 180_000;

export async function startPictureWorld(): Promise<PictureWorld> {
  const small = bufferFile(Buffer.from(encodeDemoModel('demo-owl')));
  const hub = await startFakeHub({
    repos: [
      { ...REPO, name: 'demo/coder-24b-GGUF', downloads: 48_211, files: quantised('coder-24b', virtualFile(LARGE_BYTES)) },
      { ...REPO, name: 'demo/owl-large-GGUF', downloads: 310_556, files: quantised('owl-large', small) },
      { ...REPO, name: 'demo/owl-small-GGUF', downloads: 120_034, files: quantised('owl-small', small) },
    ],
  });
  hub.bytesPerSecond = BYTES_PER_SECOND;
  const environment = { SVC_MEMORY_BUDGET: '8Gi', HF_ENDPOINT: hub.url, HF_HOME: '/nonexistent' };
  const service = await startService({ runtime: 'process', speech: true, environment });
  for (const [name, text] of Object.entries(SLOTS)) await service.save(name, text);
  for (const name of READY) await service.until(name, 'ready', isAnswering, SETTLED_WITHIN_MS);
  await service.until('coder', 'downloading', (slot) => slot?.status.state === 'pulling', SETTLED_WITHIN_MS);
  await saveProfile(service);
  return {
    url: service.url,
    traffic: (signal) => useSlots(service, signal),
    async close() {
      await service.dispose();
      await hub.close();
    },
  };
}

const quantised = (name: string, file: ReturnType<typeof bufferFile>): Map<string, typeof file> =>
  new Map(['Q4_K_M', 'Q8_0'].map((quantisation) => [`${name}-${quantisation}.gguf`, file]));

async function saveProfile({ url }: Service): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  await fetch(`${url}/api/profiles/day`, { method: 'PUT', headers, body: '{}' });
}

async function useSlots(service: Service, signal: AbortSignal): Promise<void> {
  const send = async (path: string, body: object): Promise<void> => {
    const headers = { 'content-type': 'application/json' };
    await (await fetch(service.url + path, { method: 'POST', headers, body: JSON.stringify(body), signal })).arrayBuffer();
  };
  for (let round = 0; !signal.aborted; round += 1) {
    const content = QUESTIONS[round % QUESTIONS.length];
    const chat = { model: 'primary', stream: true, stream_options: { include_usage: true }, messages: [{ role: 'user', content }] };
    const sent = [send('/v1/chat/completions', chat), send('/v1/embeddings', { model: 'embed', input: content })];
    if (round % 20 === 0) sent.push(send('/v1/audio/speech', { model: 'tts', input: 'Good morning' }));
    // A request of a caller who has mistyped the slot.
    if (round === 3) sent.push(send('/v1/chat/completions', { ...chat, model: 'primry' }));
    await Promise.allSettled([...sent, pause(TRAFFIC_PAUSE_MS)]);
  }
}
