/**
 * Reads what an ONNX file says about itself, without its weights: the file is a list of fields, of which one is the graph, and is skipped. A file in the format of ONNX
 * Runtime (`.ort`) is only recognized. Numbers of fields: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto, message `ModelProto`.
 */
import type { ModelFiles } from '../provider.ts';
import { LONGEST_HEAD_BYTES, readFieldHead, readTexts } from './decide/protobuf-field.ts';

export type OnnxReading =
  | { readonly ok: true; readonly sizeBytes: number; readonly metadata: ReadonlyMap<string, string> }
  /** `problem` continues the sentence "The file …". */
  | { readonly ok: false; readonly problem: string };

const GRAPH = 7;
const METADATA = 14;
const KEY = 1;
const VALUE = 2;
/** Most files have about ten fields; those with functions of their own have one more for each. */
const MAX_FIELDS = 5000;
/** The longest one of known models, a lexicon, has less. */
const MAX_METADATA_BYTES = 4 * 2 ** 20;
const ORT_IDENTIFIER = 'ORTM';
const RUNTIME_HEAD_BYTES = 8;
const GET_AGAIN = 'wait until it is copied, or get it again';

export async function readOnnx(files: ModelFiles, name: string): Promise<OnnxReading> {
  const sizeBytes = await files.sizeOf(name);
  const metadata = new Map<string, string>();
  const first = await files.read(name, 0, LONGEST_HEAD_BYTES);
  if (new TextDecoder('latin1').decode(first.subarray(4, RUNTIME_HEAD_BYTES)) === ORT_IDENTIFIER) return { ok: true, sizeBytes, metadata };
  let hasGraph = false;
  let at = 0;
  for (let count = 0; at < sizeBytes; count += 1) {
    const bytes = at === 0 ? first : await files.read(name, at, LONGEST_HEAD_BYTES);
    const head = readFieldHead(bytes, 0);
    if (head === undefined || count >= MAX_FIELDS) return damaged();
    const valueAt = at + head.valueAt;
    const end = valueAt + head.valueBytes;
    if (end > sizeBytes) return at === 0 ? damaged() : { ok: false, problem: `is cut off; ${GET_AGAIN}` };
    if (head.field === GRAPH) hasGraph = true;
    if (head.field === METADATA && head.hasLength) {
      if (head.valueBytes > MAX_METADATA_BYTES) return damaged();
      const entry = readTexts(await files.read(name, valueAt, head.valueBytes));
      metadata.set(entry.get(KEY) ?? '', entry.get(VALUE) ?? '');
    }
    at = end;
  }
  return hasGraph ? { ok: true, sizeBytes, metadata } : damaged();
}

function damaged(): OnnxReading {
  return { ok: false, problem: `is damaged or not an ONNX file; ${GET_AGAIN}` };
}
