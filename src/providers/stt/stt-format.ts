/** How models for speech-to-text look on disk: a directory with the networks of one model, unpacked as sherpa-onnx releases them. */
import type { ModelFormat, ModelReading } from '../provider.ts';
import { findBundle } from '../speech/decide/bundle.ts';
import { readBundle } from '../speech/read-bundle.ts';
import { STT_BUNDLES } from './decide/stt-bundles.ts';
import { sttContents } from './decide/stt-model.ts';

export const sttFormat: ModelFormat = {
  kind: 'stt',
  recognize: ({ names }) => (names !== undefined && findBundle(STT_BUNDLES, names) !== undefined ? 'model' : undefined),
  filesOf: (name) => [name],
  contentsFrom: (stated) => stated,
  async read({ id }, files): Promise<ModelReading> {
    const bundle = findBundle(STT_BUNDLES, await files.names());
    if (bundle === undefined) {
      return { kind: 'unusable', message: `The model "${id}" is incomplete: a network or "tokens.txt" is missing; get it again` };
    }
    const reading = await readBundle(id, bundle, files);
    if (!reading.ok) return { kind: 'unusable', message: reading.message };
    return {
      kind: 'model',
      sizeBytes: reading.sizeBytes,
      contents: sttContents(bundle.family, reading.metadata),
      family: bundle.family,
    };
  },
};
