/**
 * Parses the header of a GGUF file, window by window: memory is bound to one window and the values that are kept, at
 * most `MAX_KEPT_BYTES`. For any bytes it ends, and throws nothing.
 */
import { ByteCursor, CorruptHeader, EndOfBytes, isText, sizeOf, tensorBytes, type Scalar } from './byte-cursor.ts';

export interface GgufHeader {
  readonly values: ReadonlyMap<string, Scalar>;
  readonly lists: ReadonlyMap<string, readonly number[]>;
  readonly vocabularySize: number | undefined;
  readonly tensors: TensorTotals;
  readonly blocks: BlockBytes;
  readonly fileBytes: number;
}

export interface TensorTotals {
  readonly hasClassifier: boolean;
  /** Without an output matrix, the server uses the one that embeds tokens. */
  readonly hasOutput: boolean;
  readonly parameters: number;
  /** Tensors that embed tokens, which llama.cpp keeps in host memory. */
  readonly inputBytes: number;
  readonly expertBytes: number;
}

/** Bytes of the tensors `blk.N.<name>` of each layer N, by name, such as `ffn_up_exps.weight`. */
export type BlockBytes = Readonly<Record<string, readonly number[]>>;

export type ParsedHeader =
  | { readonly kind: 'header'; readonly header: GgufHeader }
  /** The next window has to begin at the position of `progress`. */
  | { readonly kind: 'more'; readonly progress: HeaderProgress }
  | { readonly kind: 'corrupt'; readonly message: string };

/** Longer than anything that is read at once, so each window advances the parser. */
export const WINDOW_BYTES = 2 ** 20 + 2 ** 17;

const MAGIC = 0x46554747;
const DEFAULT_ALIGNMENT = 32;
/** A larger count is damage, and a loop over it would take too long. */
const MAX_TENSORS = 1_000_000;
const MAX_VALUES = 65_536;
const MAX_KEY_BYTES = 65_535;
const MAX_DIMENSIONS = 8;
const MAX_LIST_ITEMS = 1024;
const MAX_KEPT_TEXT_BYTES = 2 ** 20;
const MAX_KEPT_BYTES = 8 * 2 ** 20;
/** Models have about 20 names in up to 128 layers. Others are not kept. */
const MAX_BLOCK_NAMES = 64;
const MAX_BLOCKS = 512;
const BLOCK = /^blk\.(\d{1,3})\.([\w.]{1,48})$/;
/** A vocabulary of 260,000 tokens with its merges takes 15 MiB. */
const MAX_HEADER_BYTES = 2 ** 26;
const NUMBER_BYTES = 8;
const MAX_SHOWN_CHARACTERS = 60;

const ARRAY = 9;

export interface HeaderProgress extends Readonly<Omit<Progress, 'values' | 'lists' | 'blocks'>> {
  readonly values: ReadonlyMap<string, Scalar>;
  readonly lists: ReadonlyMap<string, readonly number[]>;
  readonly blocks: ReadonlyMap<string, readonly number[]>;
}

type Phase = 'start' | 'values' | 'texts' | 'tensors' | 'done';

// Mutable while one window is parsed.
interface Progress {
  phase: Phase;
  position: number;
  valuesLeft: number;
  tensorsLeft: number;
  textsLeft: number;
  keptBytes: number;
  vocabularySize: number | undefined;
  readonly values: Map<string, Scalar>;
  readonly lists: Map<string, readonly number[]>;
  readonly blocks: Map<string, number[]>;
  tensors: TensorTotals;
  dataBytes: number;
}

const NO_TENSORS: TensorTotals = { hasClassifier: false, hasOutput: false, parameters: 0, inputBytes: 0, expertBytes: 0 };

export const NO_PROGRESS: HeaderProgress = {
  phase: 'start',
  position: 0,
  valuesLeft: 0,
  tensorsLeft: 0,
  textsLeft: 0,
  keptBytes: 0,
  vocabularySize: undefined,
  values: new Map(),
  lists: new Map(),
  blocks: new Map(),
  tensors: NO_TENSORS,
  dataBytes: 0,
};

export function parseHeaderWindow(before: HeaderProgress, window: Uint8Array): ParsedHeader {
  try {
    const blocks = new Map(before.blocks.entries().map(([name, bytes]) => [name, [...bytes]]));
    const progress = { ...before, values: new Map(before.values), lists: new Map(before.lists), blocks };
    parseWindow(progress, new ByteCursor(window, progress.position));
    if (progress.phase === 'done') return { kind: 'header', header: headerOf(progress) };
    if (progress.position <= MAX_HEADER_BYTES) return { kind: 'more', progress };
    return { kind: 'corrupt', message: 'its header is longer than that of any model' };
  } catch (error) {
    if (error instanceof CorruptHeader) return { kind: 'corrupt', message: error.message };
    throw error;
  }
}

/** Values that the window does not hold completely are left for the next one. */
function parseWindow(progress: Progress, cursor: ByteCursor): void {
  try {
    while (progress.phase !== 'done' && (cursor.hasMore || isComplete(progress))) {
      STEPS[progress.phase](progress, cursor);
      progress.position = cursor.position;
    }
  } catch (error) {
    if (!(error instanceof EndOfBytes)) throw error;
  }
}

const isComplete = ({ phase, valuesLeft, tensorsLeft }: Progress): boolean =>
  (phase === 'values' && valuesLeft === 0) || (phase === 'tensors' && tensorsLeft === 0);

const STEPS: Readonly<Record<Exclude<Phase, 'done'>, (progress: Progress, cursor: ByteCursor) => void>> = {
  start(progress, cursor) {
    if (cursor.u32() !== MAGIC) throw new CorruptHeader('it does not start with "GGUF"');
    const version = cursor.u32();
    if (version !== 2 && version !== 3) throw new CorruptHeader(`its GGUF version is ${version}, but only 2 and 3 are supported`);
    const tensors = cursor.u64('tensors', MAX_TENSORS);
    const values = cursor.u64('metadata keys', MAX_VALUES);
    Object.assign(progress, { phase: 'values', tensorsLeft: tensors, valuesLeft: values });
  },
  values(progress, cursor) {
    if (progress.valuesLeft === 0) {
      progress.phase = 'tensors';
      return;
    }
    const key = cursor.text(MAX_KEY_BYTES);
    const type = cursor.u32();
    const texts = type === ARRAY ? parseArray(progress, cursor, key) : parseValue(progress, cursor, { key, type });
    progress.valuesLeft -= 1;
    if (texts > 0) Object.assign(progress, { phase: 'texts', textsLeft: texts });
  },
  texts(progress, cursor) {
    progress.textsLeft -= cursor.skipTexts(progress.textsLeft);
    if (progress.textsLeft === 0) progress.phase = 'values';
  },
  tensors(progress, cursor) {
    if (progress.tensorsLeft === 0) {
      progress.phase = 'done';
      return;
    }
    const { name, bytes, end, totals } = parseTensor(cursor, progress.tensors);
    noteBlock(progress.blocks, name, bytes);
    progress.tensors = totals;
    progress.dataBytes = Math.max(progress.dataBytes, end);
    progress.tensorsLeft -= 1;
  },
};

function parseValue(progress: Progress, cursor: ByteCursor, { key, type }: { readonly key: string; readonly type: number }): 0 {
  if (isText(type)) {
    if (cursor.textBytes() > MAX_KEPT_TEXT_BYTES || !isNeeded(key)) cursor.skipText();
    else keepValue(progress, key, cursor.text(MAX_KEPT_TEXT_BYTES));
  } else {
    const value = cursor.scalar(type);
    if (isNeeded(key)) keepValue(progress, key, value);
  }
  return 0;
}

function parseArray(progress: Progress, cursor: ByteCursor, key: string): number {
  const type = cursor.u32();
  const length = cursor.u64('array items', MAX_HEADER_BYTES);
  if (type === ARRAY) throw new CorruptHeader('it has an array of arrays');
  if (key === 'tokenizer.ggml.tokens') progress.vocabularySize = length;
  if (isText(type)) return length;
  if (length > MAX_LIST_ITEMS || !isNeeded(key)) {
    cursor.skip(sizeOf(type) * length);
    return 0;
  }
  const items = Array.from({ length }, () => Number(cursor.scalar(type)));
  countKept(progress, key, items.length * NUMBER_BYTES);
  progress.lists.set(key, items);
  return 0;
}

const isNeeded = (key: string): boolean => !key.startsWith('tokenizer.') || key.startsWith('tokenizer.chat_template');

function keepValue(progress: Progress, key: string, value: Scalar): void {
  countKept(progress, key, typeof value === 'string' ? value.length : NUMBER_BYTES);
  progress.values.set(key, value);
}

function countKept(progress: Progress, key: string, bytes: number): void {
  if (progress.values.has(key) || progress.lists.has(key)) throw new CorruptHeader(`its key "${shorten(key)}" occurs twice`);
  progress.keptBytes += key.length + bytes;
  if (progress.keptBytes > MAX_KEPT_BYTES) throw new CorruptHeader('its metadata is longer than that of any model');
}

const shorten = (name: string): string => name.slice(0, MAX_SHOWN_CHARACTERS);

function noteBlock(blocks: Map<string, number[]>, tensor: string, bytes: number): void {
  const [, layer = '', name = ''] = BLOCK.exec(tensor) ?? [];
  if (name === '' || Number(layer) >= MAX_BLOCKS || (!blocks.has(name) && blocks.size >= MAX_BLOCK_NAMES)) return;
  const ofName = blocks.get(name) ?? [];
  while (ofName.length <= Number(layer)) ofName.push(0);
  ofName[Number(layer)] = bytes;
  blocks.set(name, ofName);
}

interface Tensor {
  readonly name: string;
  readonly bytes: number;
  readonly end: number;
  readonly totals: TensorTotals;
}

function parseTensor(cursor: ByteCursor, totals: TensorTotals): Tensor {
  const name = cursor.text(MAX_KEY_BYTES);
  const dimensions = cursor.u32();
  if (dimensions > MAX_DIMENSIONS) throw new CorruptHeader(`its tensor "${shorten(name)}" has ${dimensions} dimensions`);
  let elements = 1;
  for (let index = 0; index < dimensions; index += 1) elements *= cursor.u64('elements', Number.MAX_SAFE_INTEGER);
  const type = cursor.u32();
  const offset = cursor.u64('bytes of offset', Number.MAX_SAFE_INTEGER);
  const bytes = tensorBytes(type, elements);
  const end = offset + bytes;
  const parameters = totals.parameters + elements;
  if (!Number.isSafeInteger(end) || !Number.isSafeInteger(parameters))
    throw new CorruptHeader(`its tensor "${shorten(name)}" is larger than any file`);
  return {
    name,
    bytes,
    end,
    totals: {
      hasClassifier: totals.hasClassifier || /^cls(\.|$)/.test(name),
      hasOutput: totals.hasOutput || name === 'output.weight',
      parameters,
      inputBytes: totals.inputBytes + (/^(per_layer_)?token_embd\./.test(name) ? bytes : 0),
      expertBytes: totals.expertBytes + (name.includes('_exps.') ? bytes : 0),
    },
  };
}

function headerOf({ values, lists, vocabularySize, tensors, blocks, position, dataBytes }: Progress): GgufHeader {
  const alignment = alignmentOf(values);
  const fileBytes = Math.ceil(position / alignment) * alignment + dataBytes;
  return { values, lists, vocabularySize, tensors, blocks: Object.fromEntries(blocks), fileBytes };
}

function alignmentOf(values: ReadonlyMap<string, Scalar>): number {
  const value = values.get('general.alignment') ?? DEFAULT_ALIGNMENT;
  if (typeof value === 'number' && value >= 8 && value % 8 === 0) return value;
  throw new CorruptHeader('its "general.alignment" is not a multiple of 8');
}
