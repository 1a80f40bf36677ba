/**
 * Finds out which kind of model a directory contains, by the names of its files, as in the releases of sherpa-onnx:
 * https://github.com/k2-fsa/sherpa-onnx/releases. Pure.
 */
import type { Task } from './parse-flags.ts';

export interface BundleFile {
  readonly name: string;
  readonly size: number;
  readonly directory: boolean;
}

export type Family = 'moonshine' | 'whisper' | 'transducer' | 'ctc' | 'kokoro' | 'vits' | 'matcha' | 'pocket';

export interface Bundle {
  readonly family: Family;
  /** The files of the model by their role. Graphs are checked before the engine loads them. */
  readonly graphs: Readonly<Record<string, string>>;
  readonly files: Readonly<Record<string, string>>;
  /** Further files that improve the pronunciation, if they are there. */
  readonly lexicons: readonly string[];
  readonly rules: readonly string[];
  readonly espeak: boolean;
}

export type FoundBundle = { readonly ok: true; readonly bundle: Bundle } | { readonly ok: false; readonly why: string };

/** Roles that are necessary, with their files. The first family whose files are all there is taken. */
interface Shape {
  readonly family: Family;
  readonly task: Task;
  readonly graphs: Readonly<Record<string, RegExp>>;
  readonly files: Readonly<Record<string, RegExp>>;
  /** Graphs with integers of 8 bits are taken only where there are no others. */
  readonly floatsFirst?: boolean;
}

const TOKENS = { tokens: /^(?:.*[-_.])?tokens\.txt$/ };
const graph = (name: string): RegExp => new RegExp(`^(?:.*[-_.])?${name}(?:[-_.].*)?\\.(?:onnx|ort)$`);

const SHAPES: readonly Shape[] = [
  {
    family: 'moonshine',
    task: 'stt',
    graphs: {
      preprocessor: /^preprocess(?:\.int8)?\.onnx$/,
      encoder: /^encode(?:\.int8)?\.onnx$/,
      uncachedDecoder: /^uncached_decode(?:\.int8)?\.onnx$/,
      cachedDecoder: /^cached_decode(?:\.int8)?\.onnx$/,
    },
    files: TOKENS,
  },
  {
    family: 'moonshine',
    task: 'stt',
    graphs: {
      encoder: /^encoder_model(?:\.int8|_quantized)?\.(?:onnx|ort)$/,
      mergedDecoder: /^decoder_model_merged(?:\.int8|_quantized)?\.(?:onnx|ort)$/,
    },
    files: TOKENS,
  },
  {
    family: 'transducer',
    task: 'stt',
    graphs: { encoder: graph('encoder'), decoder: graph('decoder'), joiner: graph('joiner') },
    files: TOKENS,
  },
  { family: 'whisper', task: 'stt', graphs: { encoder: graph('encoder'), decoder: graph('decoder') }, files: TOKENS },
  {
    family: 'kokoro',
    task: 'tts',
    graphs: { model: /^model(?:\.[a-z0-9]+)?\.onnx$/ },
    files: { ...TOKENS, voices: /^voices\.bin$/ },
    // Integers of 8 bits gave samples that are no numbers for 17 of 144 short sentences (a public measurement of 2026-09-24), and are slower on x86.
    floatsFirst: true,
  },
  {
    family: 'matcha',
    task: 'tts',
    graphs: { acousticModel: /^model-steps-\d+\.onnx$/, vocoder: /^(?:vocos|hifigan).*\.onnx$/ },
    files: TOKENS,
  },
  {
    family: 'pocket',
    task: 'tts',
    graphs: {
      lmFlow: graph('lm_flow'),
      lmMain: graph('lm_main'),
      encoder: graph('encoder'),
      decoder: graph('decoder'),
      textConditioner: graph('text_conditioner'),
    },
    files: { vocabJson: /^vocab\.json$/, tokenScoresJson: /^token_scores\.json$/ },
  },
  { family: 'vits', task: 'tts', graphs: { model: /\.onnx$/ }, files: TOKENS },
  { family: 'ctc', task: 'stt', graphs: { model: /^model(?:\.int8)?\.onnx$/ }, files: TOKENS },
];

export function findBundle(task: Task, files: readonly BundleFile[]): FoundBundle {
  const names = files.filter(({ directory }) => !directory).map(({ name }) => name);
  for (const shape of SHAPES) {
    if (shape.task !== task) continue;
    const graphs = pickAll(shape.graphs, names, shape.floatsFirst);
    const others = pickAll(shape.files, names);
    if (graphs === undefined || others === undefined) continue;
    return {
      ok: true,
      bundle: {
        family: shape.family,
        graphs,
        files: others,
        lexicons: names.filter((name) => /^lexicon.*\.txt$/.test(name)).toSorted(),
        rules: names.filter((name) => name.endsWith('.fst')).toSorted((a, b) => ruleRank(a) - ruleRank(b) || a.localeCompare(b)),
        espeak: files.some(({ name, directory }) => directory && name === 'espeak-ng-data'),
      },
    };
  }
  return { ok: false, why: explain(task, names) };
}

/** Rules rewrite a text one after the other, in the order of the documentation of sherpa-onnx: a date is no number any more when numbers are read. */
const RULES = ['phone', 'date', 'number'];
const ruleRank = (name: string): number => (RULES.findIndex((rule) => name.startsWith(rule)) + RULES.length + 1) % (RULES.length + 1);

/** The smallest name that fits, but a file with integers of 8 bits first: a CPU is faster with it, and it needs less memory. */
function pickAll(
  wanted: Readonly<Record<string, RegExp>>,
  names: readonly string[],
  floatsFirst = false,
): Readonly<Record<string, string>> | undefined {
  const picked: Record<string, string> = {};
  const rank = (name: string): number => Number(isInt8(name) === floatsFirst);
  for (const [role, pattern] of Object.entries(wanted)) {
    const fitting = names.filter((name) => pattern.test(name)).sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
    const [first] = fitting;
    if (first === undefined) return undefined;
    picked[role] = first;
  }
  return picked;
}

const isInt8 = (name: string): boolean => name.includes('int8');

function explain(task: Task, names: readonly string[]): string {
  const what =
    task === 'stt' ? 'speech-to-text (Moonshine, Whisper, or a NeMo model)' : 'text-to-speech (Kokoro, VITS, Piper, Matcha, or Pocket TTS)';
  const archive = names.find((name) => /\.(?:tar\.bz2|tar\.gz|tgz|zip)$/.test(name));
  if (archive !== undefined) return `Unpack "${archive}": the directory contains an archive and no model`;
  if (names.length === 0) return 'Choose a directory with the files of a model: it contains no files';
  if (!names.some((name) => TOKENS.tokens.test(name)))
    return `Add the file "tokens.txt" of the model: without it, the directory is no model for ${what}`;
  return `Choose the directory of a model for ${what}: its files are ${names.slice(0, 12).join(', ')}`;
}
