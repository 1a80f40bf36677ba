/** Provider for speech-to-text, which computes with the CPU only. */
import { z } from 'zod';
import { rankBackends } from '../decide/rank-backends.ts';
import type { AskHealth, ModelFacts, ModelFiles, ModelFormat, ModelReading, Provider } from '../provider.ts';
import { unusable } from '../provider.ts';
import { serverMemory } from '../speech/decide/speech-command.ts';
import { askReadiness as askSpeech, judgeTranscription, speechProvider } from '../speech/speech-server.ts';
import { PROBE_FORM_TYPE, probeForm } from '../decide/judge-status.ts';
import type { Capability } from '../../schema/slot/provider-kinds.ts';
import { findBundle, network, TOKENS, type BundleShape } from '../speech/decide/bundle.ts';
import { readBundle } from '../speech/read-bundle.ts';
import { GGML_HEAD_BYTES, readGgmlHead } from '../../../toolboxes/speech/decide/read-ggml.ts';

/** Naming of whisper.cpp, e.g. `ggml-large-v3-turbo-q5_0.bin`. */
const GGML_NAME = /^ggml-[^/]+\.bin$/;

export const sttFormat: ModelFormat = {
  kind: 'stt',
  recognize({ name, names }) {
    if (names === undefined) return GGML_NAME.test(name) ? 'model' : undefined;
    return findBundle(STT_BUNDLES, names) === undefined ? undefined : 'model';
  },
  contentsFrom: (stated) => stated,
  async read({ id, entry }, files): Promise<ModelReading> {
    if (entry.names === undefined) return readFile(id, entry.name, files);
    const bundle = findBundle(STT_BUNDLES, await files.names());
    if (bundle === undefined) return unusable(`The model "${id}" is incomplete: a network or "tokens.txt" is missing; get it again`);
    const reading = await readBundle(id, bundle, files);
    if (!reading.ok) return unusable(reading.message);
    if (reading.metadata.has('n_speakers'))
      return unusable(`The model "${id}" speaks, and does not listen: use it in a slot of the provider "tts", and another model here`);
    return {
      kind: 'model',
      sizeBytes: reading.sizeBytes,
      contents: { translates: bundle.family === 'whisper' && reading.metadata.get('is_multilingual') === '1' },
      family: bundle.family,
    };
  },
};

async function readFile(id: string, name: string, files: ModelFiles): Promise<ModelReading> {
  const sizeBytes = await files.sizeOf(name);
  const head = readGgmlHead(await files.read(name, 0, GGML_HEAD_BYTES), sizeBytes);
  if (!head.ok) return unusable(`The file "${name}" of "${id}" cannot be used: ${head.why}; get it again, or choose another model`);
  return { kind: 'model', sizeBytes, contents: { translates: head.model.translates }, family: 'whisper' };
}

const exactly = (name: string): RegExp => new RegExp(`^${name}(?:\\.int8|_quantized)?\\.(?:onnx|ort)$`);

const STT_BUNDLES: readonly BundleShape[] = [
  {
    family: 'moonshine',
    networks: ['preprocess', 'encode', 'uncached_decode', 'cached_decode'].map(exactly),
    others: [TOKENS],
  },
  { family: 'moonshine', networks: ['encoder_model', 'decoder_model_merged'].map(exactly), others: [TOKENS] },
  { family: 'transducer', networks: ['encoder', 'decoder', 'joiner'].map(network), others: [TOKENS] },
  { family: 'whisper', networks: ['encoder', 'decoder'].map(network), others: [TOKENS] },
  // Text-to-speech models have files of these names as well.
  { family: 'ctc', networks: [/^model(?:\.int8)?\.onnx$/], others: [TOKENS], without: /^(?:voices\.bin|espeak-ng-data|lexicon.*\.txt)$/ },
];

const Contents = z.looseObject({ translates: z.boolean().optional().catch(undefined) });

export function sttCapabilities({ provider, contents }: Pick<ModelFacts, 'provider' | 'contents'>): readonly Capability[] {
  const known = provider === 'stt' ? Contents.safeParse(contents).data : undefined;
  return known?.translates === true ? ['transcription', 'translation'] : ['transcription'];
}

const askReadiness: AskHealth = async (endpoint, io, { spec }, signal) => {
  const form = { body: probeForm(spec.model.default), contentType: PROBE_FORM_TYPE };
  return await askSpeech(endpoint, io, { path: '/v1/audio/transcriptions', ...form, judge: judgeTranscription }, signal);
};

const CAPABILITY_OF: Readonly<Partial<Record<string, Capability>>> = {
  '/v1/audio/transcriptions': 'transcription',
  '/v1/audio/translations': 'translation',
};

const inferPath: Provider['infer'] = ({ capability, path }, capabilities) => {
  const needed = Object.hasOwn(CAPABILITY_OF, path) ? CAPABILITY_OF[path] : undefined;
  if (needed === capability && capabilities.includes(capability)) return { kind: 'forward', path };
  const message =
    capability === 'translation'
      ? 'The model of this slot only transcribes; use one that translates, such as a multilingual Whisper'
      : `A slot for speech-to-text does not serve "${path}"; send the request to another slot`;
  return { kind: 'refuse', message };
};

export const stt: Provider = {
  ...speechProvider('stt'),
  models: sttFormat,
  rankBackends: (hardware) => rankBackends('stt', hardware),
  devices: () => [],
  estimateMemory: (_name, _spec, { sizeBytes }) => serverMemory(sizeBytes, false),
  capabilities: (_name, _spec, model) => sttCapabilities(model),
  readiness: askReadiness,
  infer: inferPath,
};
