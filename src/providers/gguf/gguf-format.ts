/** Format of GGUF models: one file or the shards of a split one, with a vision projector beside it. */
import type { ModelFiles, ModelFormat, ModelReading, ModelContents, ModelTraits } from '../provider.ts';
import type { Readable } from '../../schema/words/failure.ts';
import { unusable } from '../provider.ts';
import { shardNames } from '../../schema/slot/model-providers.ts';
import {
  ggufContents,
  isProjector,
  isProjectorName,
  parseContents,
  projectorFor,
  withListedProjector,
  type GgufContents,
} from './decide/gguf-model.ts';
import { NO_PROGRESS, parseHeaderWindow, WINDOW_BYTES, type GgufHeader } from './decide/parse-gguf-header.ts';
import { defined } from '../../schema/pod/kube-fields.ts';
import { MODEL_ABILITIES, type ModelAbility } from '../../schema/slot/provider-kinds.ts';
import { POOLINGS } from './decide/model-role.ts';

export function ggufTraits(contents: ModelContents): ModelTraits {
  const known = parseContents(contents);
  if (known === undefined) return {};
  const { quantization, parameters = 0, trainedContext: context, expertCount: total, expertUsedCount: active, embeddingLength } = known;
  return {
    ...defined({ quantization, context, parameters: parameters === 0 ? undefined : parameters }),
    dimensions: known.embeddingLengthOut ?? embeddingLength,
    ...poolingOf(known),
    ...(total === undefined ? {} : { experts: { total, active } }),
    ...abilitiesOf(known),
  };
}

function poolingOf({ poolingType = 0, hasClassifier }: GgufContents): Pick<ModelTraits, 'pooling'> {
  const pooling = hasClassifier === true ? 'rank' : POOLINGS[poolingType];
  return pooling === undefined || pooling === 'none' ? {} : { pooling };
}

/** The chat template decides about tools and thinking; contents stated by a catalogue lack it. */
function abilitiesOf({ chatTemplate, tools, thinking, projector, sees, hears }: GgufContents): Pick<ModelTraits, 'abilities'> {
  if (chatTemplate === undefined && projector === undefined) return {};
  const has: Readonly<Record<ModelAbility, boolean>> = {
    tools: tools === true,
    thinking: thinking === true,
    vision: projector !== undefined && sees !== false,
    audio: hears === true,
  };
  return { abilities: MODEL_ABILITIES.filter((ability) => has[ability]) };
}

type Shard = Readable<{ readonly header: GgufHeader; readonly sizeBytes: number }>;

/** Enough for models without a large vocabulary. */
const FIRST_WINDOW_BYTES = 2 ** 18;
const WAIT_OR_RETRY = 'wait until it is copied, or get it again';

export const ggufFormat: ModelFormat = {
  kind: 'gguf',
  recognize({ name, names }) {
    if (names !== undefined || !/\.gguf$/i.test(name)) return undefined;
    return isProjectorName(name) || shardNames(name)[0] !== name ? 'part' : 'model';
  },
  filesOf: shardNames,
  contentsFrom: withListedProjector,
  describe: ggufTraits,
  async read({ id, entry: { name } }, files): Promise<ModelReading> {
    const headers: GgufHeader[] = [];
    let sizeBytes = 0;
    for (const shardName of shardNames(name)) {
      const shard = await readShard(files, shardName);
      if (!shard.ok) return unusable(`The model file "${shardName}" of "${id}" ${shard.problem}`);
      headers.push(shard.header);
      sizeBytes += shard.sizeBytes;
    }
    const [first] = headers;
    if (first !== undefined && isProjector(first))
      return unusable(`"${id}" is a vision projector, not a model: use the model that it belongs to`);
    const projector = projectorFor(name, await files.names());
    const read = projector === undefined ? undefined : await readShard(files, projector);
    const values = read?.ok === true ? read.header.values : new Map();
    const own = projector === undefined ? undefined : { name: projector, sizeBytes: await files.sizeOf(projector), values };
    const contents = ggufContents(headers, own);
    return { kind: 'model', sizeBytes, contents, family: contents.architecture };
  },
};

async function readShard(files: ModelFiles, name: string): Promise<Shard> {
  const sizeBytes = await files.sizeOf(name);
  let progress = NO_PROGRESS;
  for (let window = FIRST_WINDOW_BYTES; progress.position < sizeBytes; window = WINDOW_BYTES) {
    const { position } = progress;
    const length = Math.min(window, sizeBytes - position);
    const bytes = await files.read(name, position, length);
    const parsed = parseHeaderWindow(progress, bytes);
    if (parsed.kind === 'header') return checkComplete(parsed.header, sizeBytes);
    if (parsed.kind === 'corrupt') return refuse(`is damaged or not a GGUF file: ${parsed.message}; get it again`);
    // The file has become shorter meanwhile, or ends within a value.
    if (bytes.length < length || (parsed.progress.position === position && position + length >= sizeBytes)) break;
    progress = parsed.progress;
  }
  return refuse(`is incomplete: it ends within its header, after ${sizeBytes} bytes; ${WAIT_OR_RETRY}`);
}

function checkComplete(header: GgufHeader, sizeBytes: number): Shard {
  if (sizeBytes >= header.fileBytes) return { ok: true, header, sizeBytes };
  return refuse(`is incomplete: it has ${sizeBytes} of ${header.fileBytes} bytes; ${WAIT_OR_RETRY}`);
}

const refuse = (problem: string): Shard => ({ ok: false, problem });
