/** How GGUF models look on disk: one file, or the shards of a split one, and a vision projector beside it. What their headers say. */
import type { ModelFiles, ModelFormat, ModelReading } from '../provider.ts';
import { shardNames } from '../../schema/gguf-names.ts';
import { ggufContents, isProjector, isProjectorName, projectorFor, withListedProjector } from './decide/gguf-model.ts';
import { parseGgufHeader, type GgufHeader } from './decide/parse-gguf-header.ts';

type Shard =
  | { readonly ok: true; readonly header: GgufHeader; readonly sizeBytes: number }
  /** `problem` continues the sentence "The model file …". */
  | { readonly ok: false; readonly problem: string };

/** Most headers fit into the first step, one with a vocabulary of 150,000 tokens into the third. No header is longer than the last. */
const READ_STEPS_BYTES = [2 ** 18, 2 ** 22, 2 ** 24, 2 ** 26, 2 ** 28];
const WAIT_OR_RETRY = 'wait until it is copied, or get it again';

export const ggufFormat: ModelFormat = {
  kind: 'gguf',
  recognize({ name, names }) {
    if (names !== undefined || !/\.gguf$/i.test(name)) return undefined;
    return isProjectorName(name) || shardNames(name)[0] !== name ? 'part' : 'model';
  },
  filesOf: shardNames,
  contentsFrom: withListedProjector,
  async read({ id, entry: { name } }, files): Promise<ModelReading> {
    const headers: GgufHeader[] = [];
    let sizeBytes = 0;
    for (const shardName of shardNames(name)) {
      const shard = await readShard(files, shardName);
      if (!shard.ok) return { kind: 'unusable', message: `The model file "${shardName}" of "${id}" ${shard.problem}` };
      headers.push(shard.header);
      sizeBytes += shard.sizeBytes;
    }
    const [first] = headers;
    if (first !== undefined && isProjector(first)) {
      return { kind: 'unusable', message: `"${id}" is a vision projector, not a model: use the model that it belongs to` };
    }
    const contents = ggufContents(headers, projectorFor(name, await files.names()));
    return { kind: 'model', sizeBytes, contents, family: contents.architecture };
  },
};

async function readShard(files: ModelFiles, name: string): Promise<Shard> {
  const sizeBytes = await files.sizeOf(name);
  for (const step of READ_STEPS_BYTES) {
    const length = Math.min(step, sizeBytes);
    const parsed = parseGgufHeader(await files.read(name, 0, length));
    if (parsed.kind === 'header') return checkComplete(parsed.header, sizeBytes);
    if (parsed.kind === 'corrupt') return refuse(`is damaged or not a GGUF file: ${parsed.message}; get it again`);
    if (length === sizeBytes) return refuse(`is incomplete: it ends within its header, after ${sizeBytes} bytes; ${WAIT_OR_RETRY}`);
  }
  return refuse('is damaged: its header is too long; get it again');
}

function checkComplete(header: GgufHeader, sizeBytes: number): Shard {
  if (sizeBytes >= header.fileBytes) return { ok: true, header, sizeBytes };
  return refuse(`is incomplete: it has ${sizeBytes} of ${header.fileBytes} bytes; ${WAIT_OR_RETRY}`);
}

function refuse(problem: string): Shard {
  return { ok: false, problem };
}
