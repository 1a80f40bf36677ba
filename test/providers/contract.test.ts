import { expect, test } from '@jest/globals';
import { encodeEmbedder } from '../../toolboxes/demo/demo-embedder.ts';
import { encodeDemoModel } from '../../toolboxes/demo/demo-models.ts';
import { PROVIDERS } from '../../src/providers/registry.ts';
import type { ModelFacts, ProbeResponse } from '../../src/providers/provider.ts';
import type { ProviderKind } from '../../src/schema/slot/provider-kinds.ts';
import { describeProviderContract, type ProviderSamples } from '../support/providers/provider-contract.ts';
import { safetensors, SHAPES, type FileBytes } from '../support/comfyui/checkpoints.ts';
import type { SampleModel } from '../support/providers/files-in-memory.ts';
import { modelList } from '../support/flm/model-list.ts';
import { changed, PORTRAIT } from '../support/comfyui/user-workflows.ts';
import { kokoroSample, moonshineSample, piperSample, transducerSample, whisperSample } from '../support/speech/onnx-sample.ts';
import { encodeTinyWhisper } from '../support/speech/tiny-whisper.ts';
import { toy } from '../support/toy-provider/toy.ts';

const file = (name: string, bytes: Uint8Array) => ({ entry: { name }, files: { [name]: bytes } });
const text = (value: string): Uint8Array => new TextEncoder().encode(value);

/** The same tensors, with sides that fit into memory: families are told apart by the second one, and by names. */
const SMALL = Object.fromEntries(
  Object.entries(SHAPES).map(([family, shapes]) => [
    family,
    Object.fromEntries(Object.entries(shapes).map(([name, [, second = 1]]) => [name, [1, second]])),
  ]),
);

function checkpoint(name: string, shapes: Parameters<typeof safetensors>[0] = {}, beside: readonly string[] = []): SampleModel {
  const whole = ({ header, sizeBytes }: FileBytes) => Buffer.concat([header, Buffer.alloc(sizeBytes - header.length)]);
  const others = beside.map((each) => [each, whole(safetensors({ weight: [4, 4] }))] as const);
  return { entry: { name }, files: { [name]: whole(safetensors(shapes)), ...Object.fromEntries(others) } };
}

const json = (body: unknown): ProbeResponse => ({ status: 200, body: JSON.stringify(body) });

/** As llama-server answers. */
function soundAnswer(route: string, { contents }: ModelFacts): ProbeResponse {
  const length = Number(contents?.['embeddingLength'] ?? 1);
  if (route === '/v1/completions') return json({ choices: [{ text: 'The', index: 0, logprobs: null, finish_reason: 'length' }] });
  if (route === '/v1/embeddings')
    return json({ data: [{ embedding: Array.from({ length }, (_, index) => 0.5 - index / length), index: 0 }] });
  if (route === '/v1/rerank') return json({ results: [4.5, -8.1].map((score, index) => ({ index, relevance_score: score })) });
  return json({ status: 'ok' });
}

/** As the speech server answers. The beginning of a WAV file, read as if it were text. */
function soundSpeechAnswer(route: string): ProbeResponse {
  if (route === '/health') return json({ status: 'ready' });
  if (route === '/v1/audio/transcriptions') return json({ text: '' });
  return { status: 200, body: `RIFF\0\0\0\0WAVEfmt ${'\0'.repeat(150)}\u0003\u0001${'\0'.repeat(100)}` };
}

/** As FastFlowLM answers. */
function soundNpuAnswer(route: string): ProbeResponse {
  if (route === '/api/npu/status') return json({ npu_available: true, active_requests: 0, message: 'NPU is available' });
  if (route === '/v1/embeddings') return json({ data: [{ embedding: [0.5, -0.5], index: 0 }] });
  if (route === '/v1/audio/transcriptions') return json({ model: 'whisper-v3:turbo', text: '' });
  return json({ choices: [{ index: 0, message: { role: 'assistant', content: 'H' }, finish_reason: 'length' }] });
}

/** As ComfyUI lists the models that it has, and jobs that are done. */
function soundComfyAnswer(route: string, { hostPath }: ModelFacts): ProbeResponse {
  const [, first, second = ''] = route.split('/');
  if (first === 'object_info')
    return json({ [second]: { input: { required: { name: [[hostPath.split('/').at(-1), 'base.safetensors']] } } } });
  const images = [{ filename: 'ComfyUI_temp_00001_.png', subfolder: '', type: 'temp' }];
  const status = { status_str: 'success', completed: true, messages: [] };
  return json(first === 'history' ? { [second]: { outputs: { '9': { images } }, status } } : { system: {} });
}

/** A provider of the registry without samples does not compile. A remote has no server here (`remote.test.ts`). */
const SAMPLES: Readonly<Record<Exclude<keyof typeof PROVIDERS, 'remote'>, ProviderSamples>> = {
  gguf: {
    models: {
      'a chat model': file('chat.gguf', encodeDemoModel('demo-fox')),
      'an embedding model': file('embed.gguf', encodeDemoModel('demo-embed')),
      'a reranker': file('rerank.gguf', encodeEmbedder({ name: 'r', head: 'rank' })),
    },
    maxReadBytes: 8 * 2 ** 20,
    sound: soundAnswer,
  },
  image: {
    models: {
      'SD 1.5': checkpoint('v1-5-pruned-emaonly.safetensors', SMALL['sd-1.5']),
      'SDXL turbo': checkpoint('sd_xl_turbo_1.0_fp16.safetensors', SMALL.sdxl),
      SDXL: checkpoint('sd_xl_base_1.0.safetensors', SMALL.sdxl),
      'FLUX.1 schnell in one file': checkpoint('flux1-schnell-fp8.safetensors', SMALL['flux-schnell-checkpoint']),
      'FLUX.1 schnell in several files': checkpoint('flux1-schnell.safetensors', SMALL['flux-schnell-split'], [
        't5xxl_fp8_e4m3fn.safetensors',
        'clip_l.safetensors',
        'ae.safetensors',
      ]),
      'Qwen-Image in several files': checkpoint('qwen_image.safetensors', SMALL['qwen-image'], [
        'qwen_2.5_vl_7b_fp8_scaled.safetensors',
        'qwen_image_vae.safetensors',
      ]),
      'a workflow of a user': {
        entry: { name: 'portrait.workflow.json' },
        files: {
          'portrait.workflow.json': text(JSON.stringify(changed(PORTRAIT, '1', { inputs: { ckpt_name: 'base.safetensors' } }))),
          ...checkpoint('base.safetensors', SMALL.sdxl).files,
          ...checkpoint('glow.safetensors', SMALL.other).files,
        },
      },
    },
    maxReadBytes: 2 ** 20,
    sound: soundComfyAnswer,
  },
  npu: { models: {}, listing: modelList(), maxReadBytes: 0, sound: soundNpuAnswer },
  stt: {
    models: {
      'a Moonshine': moonshineSample(),
      'a Whisper of several languages': whisperSample(true),
      'a Whisper for English': whisperSample(false),
      'a transducer': transducerSample(),
      'a Whisper in one file': file('ggml-base.bin', encodeTinyWhisper({ multilingual: true })),
    },
    maxReadBytes: 4096,
    sound: soundSpeechAnswer,
  },
  tts: {
    models: { 'a Kokoro': kokoroSample(), 'a voice of Piper': piperSample() },
    maxReadBytes: 4096,
    sound: soundSpeechAnswer,
  },
};

const TOY_SAMPLES: ProviderSamples = {
  models: {
    'a model in a directory': {
      entry: { name: 'parrot', names: ['toy.json', 'weights.bin'] },
      files: { 'toy.json': text('{"phrase":"Hello","weightsBytes":1000}'), 'weights.bin': new Uint8Array(1000) },
    },
  },
  maxReadBytes: 1000,
  sound: (route) => json(route === '/alive' ? {} : { choices: [{ message: { content: 'Hello' } }] }),
};

for (const kind of Object.keys(PROVIDERS).filter((key) => key in SAMPLES)) {
  const known = Object.entries(SAMPLES).find(([each]) => each === kind);
  const provider = Object.entries(PROVIDERS).find(([each]) => each === kind);
  if (known !== undefined && provider !== undefined) describeProviderContract(provider[1], known[1]);
}
describeProviderContract(toy, TOY_SAMPLES);

test('each provider is registered under its kind, and no two have the same program', () => {
  const providers = Object.entries(PROVIDERS);
  expect(providers.map(([, { kind }]): ProviderKind => kind)).toEqual(providers.map(([kind]) => kind));
  const programs = providers.map(([, { program }]) => program);
  expect(new Set(programs).size).toBe(programs.length);
});
