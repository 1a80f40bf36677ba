/** Provider for text-to-speech. */
import type { AskHealth, BackendVerdict, ModelFormat, ModelReading, Provider } from '../provider.ts';
import { unusable } from '../provider.ts';
import { serverMemory } from '../speech/decide/speech-command.ts';
import { askHealth, askReadiness as askSpeech, judgeSpeech, speechProvider } from '../speech/speech-server.ts';
import { needsSample, voicesOf, ttsContents, voicesProblem } from './decide/tts-model.ts';
import type { Backend } from '../../schema/slot/provider-kinds.ts';
import { rankBackends } from '../decide/rank-backends.ts';
import type { Machine } from '../../schema/status/hardware.ts';
import type { SlotSpec } from '../../schema/slot/slot-spec.ts';
import { findBundle, network, TOKENS, type BundleShape } from '../speech/decide/bundle.ts';
import { readBundle } from '../speech/read-bundle.ts';

const VOICES_FILE = 'voices.bin';

export const ttsFormat: ModelFormat = {
  kind: 'tts',
  recognize: ({ names }) => (names !== undefined && findBundle(TTS_BUNDLES, names) !== undefined ? 'model' : undefined),
  contentsFrom: (stated) => stated,
  async read({ id, entry }, files): Promise<ModelReading> {
    // Directories are only among the names of the entry.
    const bundle = findBundle(TTS_BUNDLES, [...(await files.names()), ...(entry.names ?? [])]);
    if (bundle === undefined)
      return unusable(`The model "${id}" is incomplete: its network or what belongs to it is missing; get it again`);
    // The pronunciation rules of espeak-ng are a directory.
    const others = bundle.others.filter((name) => /\.(bin|txt|json)$/.test(name));
    const reading = await readBundle(id, { ...bundle, others }, files);
    if (!reading.ok) return unusable(reading.message);
    const voiceBytes = reading.sizes.get(VOICES_FILE);
    const problem = voiceBytes === undefined ? undefined : voicesProblem(reading.metadata, voiceBytes);
    if (problem !== undefined) return unusable(`The file "${VOICES_FILE}" of "${id}" ${problem}`);
    return { kind: 'model', sizeBytes: reading.sizeBytes, contents: ttsContents(bundle.family, reading.metadata), family: bundle.family };
  },
};

const TTS_BUNDLES: readonly BundleShape[] = [
  { family: 'kokoro', networks: [/^model(?:\.[a-z0-9]+)?\.onnx$/], others: [/^voices\.bin$/, TOKENS], floatsFirst: true },
  { family: 'matcha', networks: [/^model-steps-\d+\.onnx$/, /^(?:vocos|hifigan).*\.onnx$/], others: [TOKENS] },
  {
    family: 'pocket',
    networks: [network('lm_flow'), network('lm_main'), network('encoder'), network('decoder'), network('text_conditioner')],
    others: [/^vocab\.json$/, /^token_scores\.json$/],
  },
  // VITS in the terms of sherpa-onnx, e.g. the voices of Piper.
  { family: 'vits', networks: [/\.onnx$/], others: [TOKENS, /^(?:espeak-ng-data|lexicon.*\.txt)$/] },
  // A model of characters needs neither. Its files could as well be a model for speech-to-text.
  { family: 'vits', networks: [/^model(?:\.int8)?\.onnx$/], others: [TOKENS] },
];

/** Every model reads these letters in some way. */
const TEXT = 'Hello.';

/** A short text must not be silence. Models that imitate voices are only asked whether they are loaded. */
const askReadiness: AskHealth = async (endpoint, io, { spec, model }, signal) => {
  if (needsSample(model)) return await askHealth(endpoint, io, undefined, signal);
  const body = JSON.stringify({ model: spec.model.default, input: TEXT, response_format: 'wav' });
  return await askSpeech(endpoint, io, { path: '/v1/audio/speech', body, judge: judgeSpeech }, signal);
};

const inferPath: Provider['infer'] = ({ capability, path }, capabilities) => {
  if (capability === 'speech' && capabilities.includes('speech') && path === '/v1/audio/speech') return { kind: 'forward', path };
  return { kind: 'refuse', message: `A slot for text-to-speech does not serve "${path}"; send the request to another slot` };
};

const NO_VULKAN = 'the speech engine computes with the CPU only: sherpa-onnx is not built for Vulkan';

/** A program that reports its backends is believed; otherwise devices and images decide. */
function rankTtsBackends(hardware: Machine | undefined): readonly BackendVerdict[] {
  const program = hardware?.programs.tts;
  return rankBackends('tts', hardware).map(({ backend, missing }) => {
    if (missing === undefined) return { backend };
    return { backend, missing: backend === 'vulkan' && program !== undefined ? NO_VULKAN : missing };
  });
}

const devicesOf = (backend: Backend): readonly string[] => (backend === 'vulkan' ? ['/dev/dri'] : []);
const usesDevice = ({ backend, resources }: SlotSpec): boolean => backend !== 'cpu' && resources.gpus !== 0;

export const tts: Provider = {
  ...speechProvider('tts'),
  models: ttsFormat,
  rankBackends: rankTtsBackends,
  devices: devicesOf,
  estimateMemory: (_name, spec, { sizeBytes }) => serverMemory(sizeBytes, usesDevice(spec)),
  capabilities: () => ['speech'],
  voices: voicesOf,
  imitates: needsSample,
  readiness: askReadiness,
  infer: inferPath,
};
