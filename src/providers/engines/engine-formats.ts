/** Models of declared engines that no built-in provider reads: directories of the Hub, and any file. */
import { z } from 'zod';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { ggufFormat } from '../gguf/gguf-format.ts';
import type { EngineDefinition } from '../../schema/slot/engine-document.ts';
import { unusable, type ModelFacts, type ModelFiles, type ModelFormat } from '../provider.ts';
import { defined } from '../../schema/pod/kube-fields.ts';

type FormatName = EngineDefinition['models']['format'];

const MOST_CONFIG_BYTES = 2 ** 20;
/** An index of thousands of tensors. */
const MOST_INDEX_BYTES = 16 * 2 ** 20;
const CONFIG = 'config.json';
const INDEX = 'model.safetensors.index.json';
const AGAIN = 'wait until it is copied, or get it again';

const Config = z.looseObject({
  model_type: z.string().max(100).optional().catch(undefined),
  max_position_embeddings: z.int().positive().optional().catch(undefined),
});
const Index = z.object({ weight_map: z.record(z.string(), z.string()) });
const Contents = z.object({ context: z.int().positive().optional().catch(undefined) });

/** Reads directories with a `config.json` and weights, as transformers and optimum write them. */
function directoryFormat(kind: FormatName, isWeights: (name: string) => boolean): ModelFormat {
  return {
    kind,
    recognize({ names = [] }) {
      return names.includes(CONFIG) && names.some(isWeights) ? 'model' : undefined;
    },
    contentsFrom: (stated) => stated,
    async read({ id }, files) {
      const names = await files.names();
      const config = Config.safeParse(parseJson(await readText(files, CONFIG, MOST_CONFIG_BYTES))).data;
      if (config === undefined) return unusable(`The file "${CONFIG}" of "${id}" is no JSON object: ${AGAIN}`);
      const index = names.includes(INDEX) ? Index.safeParse(parseJson(await readText(files, INDEX, MOST_INDEX_BYTES))).data : undefined;
      const missing = Object.values(index?.weight_map ?? {}).find((name) => !names.includes(name));
      if (missing !== undefined) return unusable(`The model "${id}" is incomplete: "${missing}" is missing; ${AGAIN}`);
      const sizes = await Promise.all(names.filter(isWeights).map(async (name) => await files.sizeOf(name)));
      const { model_type: family, max_position_embeddings: context } = config;
      const sizeBytes = sizes.reduce((sum, bytes) => sum + bytes, 0);
      return { kind: 'model', sizeBytes, contents: defined({ context }), ...defined({ family }) };
    },
    describe: (contents) => defined({ context: Contents.safeParse(contents).data?.context }),
  };
}

async function readText(files: ModelFiles, name: string, mostBytes: number): Promise<string> {
  const length = Math.min(await files.sizeOf(name), mostBytes);
  return new TextDecoder().decode(await files.read(name, 0, length));
}

/** Whatever its server loads is known only to the engine. */
const unread = (kind: FormatName): ModelFormat => ({
  kind,
  recognize: () => undefined,
  contentsFrom: (stated) => stated,
  read: async ({ id }) => unusable(`The model "${id}" is not read: its engine loads any file`),
});

const SAFETENSORS = directoryFormat('safetensors-directory', (name) => name.endsWith('.safetensors'));
const ONNX = directoryFormat('onnx-directory', (name) => /\.onnx(?:_data)?$/.test(name));

export const FORMAT_OF: Readonly<Record<FormatName, ModelFormat>> = {
  'gguf-file': ggufFormat,
  'safetensors-directory': SAFETENSORS,
  'onnx-directory': ONNX,
  'any-file': unread('any-file'),
  name: unread('name'),
};

/** What `others` recognise is theirs, also where they refuse it. */
export const directoryFormats = (others: readonly ModelFormat[]): readonly ModelFormat[] =>
  [SAFETENSORS, ONNX].map((format) => ({
    ...format,
    recognize: (entry) => (others.some((other) => other.recognize(entry) !== undefined) ? undefined : format.recognize(entry)),
  }));

/** In a cluster nobody has read the files, so that only the name counts. */
export function acceptsModel(format: FormatName, { provider, sizeBytes, id }: ModelFacts): boolean {
  if (format === 'name' || format === 'any-file') return true;
  if (provider === undefined && sizeBytes === undefined) return (format === 'gguf-file') === /\.gguf$/i.test(id);
  return provider === FORMAT_OF[format].kind;
}
