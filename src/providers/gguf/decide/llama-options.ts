/**
 * Flags of a build of llama-server, as its `--help` lists them. They change every few months, and a server with a flag
 * that it does not know ends at once. Pure.
 */
import { KEY_WORDS } from './key-arguments.ts';
import type { ProgramHelp, ProgramOptions } from '../../provider.ts';

/**
 * Flags that were replaced, with what does the same now, for builds whose help does not say so. A build from before the
 * change gets the earlier flag as advice. `source`: in https://github.com/ggml-org/llama.cpp, unless it names another.
 */
const REPLACED: readonly Readonly<{ since: string; source: string; flags: Readonly<Record<string, readonly string[]>> }>[] = [
  {
    since: '2026-09-09',
    source: 'pull/28334; pull/26135 for the modes',
    flags: {
      '--no-mmap': ['--load-mode none'],
      '--mmap': ['--load-mode mmap'],
      '--mlock': ['--load-mode mmap+mlock', '--load-mode mlock'],
      '--direct-io': ['--load-mode dio'],
      '-dio': ['--load-mode dio'],
    },
  },
  // Builds of an interim state had both names: https://github.com/xorbitsai/xllamacpp/issues/149.
  { since: '2026-05-27', source: 'NousResearch/hermes-agent, pull/111337', flags: { '--no-webui': ['--no-ui'], '--webui': ['--ui'] } },
  {
    since: '2026-04-27',
    source: 'pull/22397',
    flags: {
      '--draft-max': ['--spec-draft-n-max', '--spec-ngram-mod-n-max'],
      '--draft-min': ['--spec-draft-n-min', '--spec-ngram-mod-n-min'],
    },
  },
];

/** `-c,    --ctx-size N      size of …`: names, what follows them, and the beginning of the text. */
const ENTRY = /^ {0,8}(--?[A-Za-z][\w.-]*(?:, *--?[A-Za-z][\w.-]*)*)(?: (\S.*?))?(?: {2,}(.*))?$/;
const REMOVED = /argument has been removed/i;
/** Every build has them; without them, the text is no help of llama-server. */
const ALWAYS = ['--model', '--port'];

function parseOptions(output: string): ProgramOptions | undefined {
  const entries: { readonly names: readonly string[]; readonly words: number; about: string }[] = [];
  for (const line of output.split('\n')) {
    const [, names, values = '', about = ''] = ENTRY.exec(line.trimEnd()) ?? [];
    const last = entries.at(-1);
    if (names !== undefined) entries.push({ names: names.split(/, */), words: countWords(values), about });
    else if (last !== undefined && line.trim() !== '') last.about += ` ${line.trim()}`;
  }
  const [gone, known] = [true, false].map((isGone) => entries.filter(({ about }) => REMOVED.test(about) === isGone));
  const table = <Value>(of: typeof entries | undefined, valueOf: (entry: (typeof entries)[number]) => Value) =>
    Object.fromEntries((of ?? []).flatMap((entry) => entry.names.map((name) => [name, valueOf(entry)])));
  const flags = table(known, ({ words, about }) => ({ words, about }));
  if (ALWAYS.some((name) => flags[name] === undefined)) return undefined;
  return { flags, removed: table(gone, ({ about }) => about.match(/--[a-z0-9*-]*[a-z0-9]/g) ?? []) };
}

/** `START END` are two, `<name pattern>=<type>,...` is one. */
const countWords = (values: string): number =>
  values
    .replaceAll(/<[^>]*>/g, '_')
    .split(' ')
    .filter((word) => word !== '').length;

function objectionToArguments(args: readonly string[], options: ProgramOptions): string | undefined {
  for (let index = 0; index < args.length; index += 1) {
    const word = args[index] ?? '';
    if (!/^--?[A-Za-z]/.test(word)) continue;
    // As llama-server reads it.
    const flag = word.startsWith('--') ? word.replaceAll('_', '-') : word;
    const known = options.flags[flag];
    if (known === undefined) return describeUnknown(flag, options);
    index += known.words;
  }
  return undefined;
}

function describeUnknown(flag: string, options: ProgramOptions): string {
  const isHere = (written: string): boolean => options.flags[written.split(' ', 1)[0] ?? ''] !== undefined;
  const listed = options.removed[flag]?.flatMap((name) => expand(name, options)) ?? [];
  const replaced = REPLACED.flatMap(({ flags }) => Object.entries(flags)).flatMap(([old, now]) =>
    old === flag ? now : now.some((each) => each.split(' ', 1)[0] === flag) ? [old] : [],
  );
  const instead = [...new Set([...listed, ...replaced])].filter(isHere).map((each) => `"${each}"`);
  const fix =
    instead.length === 0 ? 'remove it from "model.args", or install a build that has it' : `use ${instead.join(' or ')} in "model.args"`;
  return `The llama-server of this slot does not have the flag "${flag}"; ${fix}`;
}

/** Help writes `--spec-ngram-*-size-n` for several flags. */
function expand(name: string, { flags }: ProgramOptions): readonly string[] {
  const [before = '', after] = name.split('*');
  return after === undefined ? [name] : Object.keys(flags).filter((flag) => flag.startsWith(before) && flag.endsWith(after));
}

/** Otherwise it serves a web page and the prompts of all users, and may download models. The names, newest first. */
const CLOSING = [['--no-ui', '--no-webui'], ['--no-slots'], ['--offline']] as const;
/** Earlier builds take a number of layers only; more than the model has are all of them. */
const ALL_LAYERS = { now: 'all', before: '999' } as const;

/** Arguments that keep the server to itself, as far as this build has them. */
export const closingArguments = (options: ProgramOptions | undefined): readonly string[] =>
  CLOSING.flatMap((names) => (options === undefined ? names[0] : (names.find((name) => options.flags[name] !== undefined) ?? [])));

export const allLayers = (options: ProgramOptions | undefined): string =>
  options?.flags['--n-gpu-layers']?.about.includes(`'${ALL_LAYERS.now}'`) === false ? ALL_LAYERS.before : ALL_LAYERS.now;

export const llamaHelp: ProgramHelp = {
  arguments: ['--help'],
  parse: parseOptions,
  objection: objectionToArguments,
  byBuild: new Set([...CLOSING.flat(), ...Object.values(ALL_LAYERS), ...KEY_WORDS]),
};
