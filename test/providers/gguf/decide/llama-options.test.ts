import { describe, expect, test } from '@jest/globals';
import { allLayers, closingArguments, llamaHelp } from '../../../../src/providers/gguf/decide/llama-options.ts';
import { SAFE_FLAGS } from '../../../../src/providers/gguf/gguf.ts';
import type { ProgramOptions } from '../../../../src/providers/provider.ts';
import { B11669, NEWER, OLDER } from '../help/help-texts.ts';

function optionsOf(text: string): ProgramOptions {
  const options = llamaHelp.parse(text);
  if (options === undefined) throw new Error('This is the help of llama-server');
  return options;
}

const BUILDS = { OLDER: optionsOf(OLDER), B11669: optionsOf(B11669), NEWER: optionsOf(NEWER) };

describe('the help of llama-server', () => {
  test('lists every flag with its aliases, and how many words follow it', () => {
    const { flags } = BUILDS.B11669;
    const words = [
      '-c',
      '--ctx-size',
      '--swa-full',
      '-nkvo',
      '--override-tensor',
      '--control-vector-layer-range',
      '--spec-type',
      '--cpu-strict',
    ];
    expect(words.map((flag) => flags[flag]?.words)).toEqual([1, 1, 0, 0, 1, 2, 1, 1]);
    expect(flags['--ctx-size']?.about).toContain('LLAMA_ARG_CTX_SIZE');
    expect(Object.keys(flags)).toHaveLength(407);
  });

  test('names removed flags with their successors, and these are no flags', () => {
    const { flags, removed } = BUILDS.B11669;
    expect(removed['--draft-max']).toEqual(['--spec-draft-n-max', '--spec-ngram-mod-n-max']);
    expect(Object.keys(removed).filter((flag) => flags[flag] !== undefined)).toEqual([]);
  });

  test.each([
    ['nothing', ''],
    ['an error', 'llama-server: error while loading shared libraries: libllama.so: cannot open shared object file'],
    ['the help of another program', '-h, --help   print this\n--port N   the port\n'],
  ])('is not known from %s', (_what, text) => expect(llamaHelp.parse(text)).toBeUndefined());

  test('is read in little time, whatever it says', () => {
    const before = performance.now();
    for (const text of [`--model ${'-'.repeat(200_000)}`, `-${'a, -'.repeat(50_000)}`, `--x${' '.repeat(200_000)}y`, '<'.repeat(200_000)])
      llamaHelp.parse(text);
    expect(performance.now() - before).toBeLessThan(5000);
  });
});

describe('arguments of a slot', () => {
  const objection = (build: keyof typeof BUILDS, ...args: readonly string[]) => llamaHelp.objection(args, BUILDS[build]);
  const refusal = (flag: string, fix: string) => `The llama-server of this slot does not have the flag "${flag}"; ${fix}`;

  test.each<[keyof typeof BUILDS, readonly string[], string, string]>([
    ['B11669', ['--draft-max', '8'], '--draft-max', 'use "--spec-draft-n-max" or "--spec-ngram-mod-n-max" in "model.args"'],
    ['B11669', ['--ctx-size', '512', '--no-mmap'], '--no-mmap', 'use "--load-mode none" in "model.args"'],
    ['B11669', ['--no_mmap'], '--no-mmap', 'use "--load-mode none" in "model.args"'],
    ['B11669', ['--mlock'], '--mlock', 'use "--load-mode mmap+mlock" or "--load-mode mlock" in "model.args"'],
    [
      'B11669',
      ['--spec-ngram-min-hits', '1'],
      '--spec-ngram-min-hits',
      'use "--spec-ngram-simple-min-hits" or "--spec-ngram-map-k-min-hits" or "--spec-ngram-map-k4v-min-hits" in "model.args"',
    ],
    ['B11669', ['-fa', 'on', '--think-twice', '1'], '--think-twice', 'remove it from "model.args", or install a build that has it'],
    // A build from before a change has the earlier name.
    ['OLDER', ['--load-mode', 'none'], '--load-mode', 'use "--no-mmap" or "--mmap" or "--mlock" in "model.args"'],
    ['OLDER', ['--spec-draft-n-max', '8'], '--spec-draft-n-max', 'use "--draft-max" in "model.args"'],
    ['NEWER', ['--no-webui'], '--no-webui', 'use "--no-ui" in "model.args"'],
    ['NEWER', ['--metrics'], '--metrics', 'remove it from "model.args", or install a build that has it'],
  ])('%s refuses %j', (build, args, flag, fix) => expect(objection(build, ...args)).toBe(refusal(flag, fix)));

  test.each<[string, keyof typeof BUILDS, readonly string[]]>([
    ['the build has them, also where we do not know them', 'NEWER', ['--think-twice', '2']],
    ['an older build has them', 'OLDER', ['--no-mmap', '--draft-max', '8', '--mlock']],
    ['values look like flags', 'B11669', ['--grammar', '-x', '--control-vector-layer-range', '-a', '-b', '--n-predict', '-1']],
    ['a value stands alone: its server says so', 'B11669', ['12', '-1']],
    ['there are none', 'B11669', []],
  ])('pass where %s', (_why, build, args) => expect(objection(build, ...args)).toBeUndefined());
});

describe('our own arguments', () => {
  test.each<[string, ProgramOptions | undefined, readonly string[], string]>([
    ['as they are now where the build is not known', undefined, ['--no-ui', '--no-slots', '--offline'], 'all'],
    ['b11669', BUILDS.B11669, ['--no-ui', '--no-slots', '--offline'], 'all'],
    ['an older build', BUILDS.OLDER, ['--no-webui', '--no-slots'], '999'],
    ['a newer build', BUILDS.NEWER, ['--no-ui', '--offline'], 'all'],
  ])('are those that the build has: %s', (_which, options, closing, layers) => {
    expect([closingArguments(options), allLayers(options)]).toEqual([closing, layers]);
    for (const word of [...closing, layers]) expect(llamaHelp.byBuild).toContain(word);
  });
});

test('what replaces a flag that the API accepts is accepted too', () => {
  for (const flag of ['--load-mode', '--spec-draft-n-max', '--spec-draft-n-min', '--spec-type']) expect(SAFE_FLAGS).toContain(flag);
  for (const flag of ['--spec-draft-model', '--model', '--log-file', '--host', '--tools']) expect(SAFE_FLAGS).not.toContain(flag);
});
