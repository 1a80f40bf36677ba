/** How models for speech-to-text look on disk: a directory with the networks of one model, unpacked as sherpa-onnx releases them, or a Whisper in one file for whisper.cpp. */
import type { ModelFiles, ModelFormat, ModelReading } from '../provider.ts';
import { findBundle } from '../speech/decide/bundle.ts';
import { readBundle } from '../speech/read-bundle.ts';
import { GGML_HEAD_BYTES, readGgmlHead } from './decide/ggml-whisper.ts';
import { STT_BUNDLES } from './decide/stt-bundles.ts';
import { sttContents } from './decide/stt-model.ts';

/** As whisper.cpp names them: `ggml-large-v3-turbo-q5_0.bin`. */
const GGML_NAME = /^ggml-[^/]+\.bin$/;

export const sttFormat: ModelFormat = {
  kind: 'stt',
  recognize({ name, names }) {
    if (names === undefined) return GGML_NAME.test(name) ? 'model' : undefined;
    return findBundle(STT_BUNDLES, names) === undefined ? undefined : 'model';
  },
  filesOf: (name) => [name],
  contentsFrom: (stated) => stated,
  async read({ id, entry }, files): Promise<ModelReading> {
    if (entry.names === undefined) return readFile(id, entry.name, files);
    const bundle = findBundle(STT_BUNDLES, await files.names());
    if (bundle === undefined) {
      return { kind: 'unusable', message: `The model "${id}" is incomplete: a network or "tokens.txt" is missing; get it again` };
    }
    const reading = await readBundle(id, bundle, files);
    if (!reading.ok) return { kind: 'unusable', message: reading.message };
    if (reading.metadata.has('n_speakers')) {
      const message = `The model "${id}" speaks, and does not listen: use it in a slot of the provider "tts", and another model here`;
      return { kind: 'unusable', message };
    }
    return {
      kind: 'model',
      sizeBytes: reading.sizeBytes,
      contents: sttContents(bundle.family, reading.metadata),
      family: bundle.family,
    };
  },
};

async function readFile(id: string, name: string, files: ModelFiles): Promise<ModelReading> {
  const sizeBytes = await files.sizeOf(name);
  const head = readGgmlHead(await files.read(name, 0, GGML_HEAD_BYTES), sizeBytes);
  if (!head.ok)
    return {
      kind: 'unusable',
      message: `The file "${name}" of "${id}" cannot be used: ${head.why}; get it again, or choose another model`,
    };
  return { kind: 'model', sizeBytes, contents: { translates: head.model.translates }, family: 'whisper' };
}
