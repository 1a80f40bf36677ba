/** Programs are asked for their flags beside the passes: real ones that answer, hang, crash or change, and images, whose answers outlast the service. */
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { programOrEngine } from '../../src/providers/host-program.ts';
import { EMBEDDED_ENGINE } from '../../src/providers/gguf/gguf-server.ts';
import { gguf } from '../../src/providers/gguf/gguf.ts';
import { createClock } from '../../src/platform/clock.ts';
import type { Runtime } from '../../src/reconciler/ports.ts';
import { fail, ok, type Result } from '../../src/schema/words/failure.ts';
import { withProgramOptions, type ProgramOptionDeps } from '../../src/wiring/program-options.ts';
import { B11669, NEWER } from '../providers/gguf/help/help-texts.ts';
import { createInMemoryRuntime } from '../support/in-memory/in-memory-runtime.ts';
import { eventually } from '../support/eventually.ts';

const { signal } = new AbortController();
const REFERENCE = 'localhost/llama:v1';
const ID = `sha256:${'a'.repeat(64)}`;

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'svc-options-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

interface Asked {
  readonly runtime: Runtime;
  readonly wakes: () => number;
  readonly flagsOf: (name: string) => Promise<readonly string[] | 'asking' | undefined>;
}

function ask(runtime: Runtime, deps: Partial<ProgramOptionDeps>): Asked {
  let wakes = 0;
  const asking = withProgramOptions(runtime, {
    providers: { gguf },
    programs: undefined,
    imagesOf: () => [{ reference: REFERENCE }],
    env: {},
    cacheDir: path.join(dir, 'kept'),
    ...deps,
  });
  asking.changes(() => (wakes += 1), signal);
  return {
    runtime: asking,
    wakes: () => wakes,
    async flagsOf(name) {
      const facts = await asking.observe([{ reference: REFERENCE }], signal);
      if (!facts.ok) throw new Error(facts.failure.message);
      const options = facts.value.options?.get(name);
      return options === undefined || options === 'asking' ? options : Object.keys(options.flags);
    },
  };
}

describe('a program of this machine', () => {
  async function program(name: string, script: string) {
    const bin = await mkdtemp(path.join(dir, `${name}-`));
    const file = path.join(bin, 'llama-server');
    const write = async (text: string): Promise<void> => {
      await writeFile(file, `#!/bin/sh\n${text}\n`);
      await chmod(file, 0o755);
    };
    await write(script);
    const env = { PATH: `${bin}:${process.env['PATH'] ?? ''}` };
    const host = { env, stateDir: dir, onProgress: () => undefined };
    const programs = [{ kind: 'gguf' as const, name: 'llama-server', ...programOrEngine('llama-server', EMBEDDED_ENGINE, 'engine', host) }];
    const runtime = createInMemoryRuntime({ clock: createClock() });
    const bare: Runtime = { ...runtime, traits: { ...runtime.traits, images: false } };
    return { bin, write, deps: { env, programs }, ...ask(bare, { env, programs, withinMs: 1000 }) };
  }
  const printing = async (text: string): Promise<string> => {
    const file = path.join(dir, `${Math.random()}.txt`);
    await writeFile(file, text);
    return `echo called >> "$(dirname "$0")/calls"; [ "$1" = --help ] && cat '${file}'`;
  };
  const calls = async (bin: string): Promise<number> =>
    (await readFile(path.join(bin, 'calls'), 'utf8').catch(() => '')).split('\n').length - 1;

  test('is asked once, beside the pass, which is woken by the answer; and again when it has changed', async () => {
    const { bin, write, flagsOf, wakes } = await program('plain', await printing(B11669));
    expect(await flagsOf('gguf')).toBe('asking');
    await eventually('it has answered', async () => wakes() === 1);
    expect(await flagsOf('gguf')).toContain('--load-mode');
    for (let pass = 0; pass < 3; pass += 1) await flagsOf('gguf');
    expect(await calls(bin)).toBe(1);
    await write(await printing(NEWER));
    expect(await flagsOf('gguf')).toBe('asking');
    await eventually('it has answered', async () => wakes() === 2);
    expect(await flagsOf('gguf')).toContain('--think-twice');
  });

  test.each([
    ['hangs, and leaves another one that keeps its output open', 'trap "" TERM; sleep 30 & wait'],
    ['crashes', 'kill -SEGV $$'],
    ['prints without end', 'yes'],
    ['prints something else', 'echo "usage: something else"; exit 1'],
  ])('that %s is not known, after a limited time', async (_what, script) => {
    const { flagsOf, wakes } = await program('odd', script);
    expect(await flagsOf('gguf')).toBe('asking');
    await eventually('that has been given up', async () => wakes() === 1);
    expect(await flagsOf('gguf')).toBeUndefined();
  });

  test('that only one slot names is asked beside the one of all others', async () => {
    const other = await mkdtemp(path.join(dir, 'other-'));
    const file = path.join(other, 'llama-server');
    await writeFile(file, `#!/bin/sh\n${await printing(NEWER)}\n`);
    await chmod(file, 0o755);
    const { deps } = await program('shared', await printing(B11669));
    const runtime = createInMemoryRuntime({ clock: createClock() });
    const asked = ask({ ...runtime, traits: { ...runtime.traits, images: false } }, { ...deps, pathsOf: () => [file, file, '/not/there'] });
    await asked.flagsOf(file);
    await eventually('both have answered', async () => asked.wakes() === 2);
    expect(await asked.flagsOf('gguf')).not.toContain('--think-twice');
    expect(await asked.flagsOf(file)).toContain('--think-twice');
    expect(await asked.flagsOf('/not/there')).toBeUndefined();
    expect(await calls(other)).toBe(1);
  });

  test('that is not installed is neither asked nor installed', async () => {
    const { flagsOf, bin } = await program('missing', '');
    await rm(path.join(bin, 'llama-server'));
    expect(await flagsOf('gguf')).toBeUndefined();
  });
});

describe('the program of an image', () => {
  function image(answer: () => Promise<Result<string>>, cacheDir: string, imageId = ID) {
    const printed: (readonly string[])[] = [];
    const runtime = createInMemoryRuntime({ clock: createClock() });
    const bare: Runtime = {
      ...runtime,
      observe: async (images) => ok({ workloads: [], images: images.map(({ reference }) => ({ reference, present: true, imageId })) }),
      async print(_image, argv) {
        printed.push(argv);
        return answer();
      },
    };
    return { printed, ...ask(bare, { cacheDir, withinMs: 1000 }) };
  }
  const known = async (asked: Asked): Promise<readonly string[] | 'asking' | undefined> => {
    expect(await asked.flagsOf(REFERENCE)).toBe('asking');
    await eventually('it has answered', async () => asked.wakes() === 1);
    return asked.flagsOf(REFERENCE);
  };

  test('is asked once and for all: its answer outlasts the service, but not the image', async () => {
    const kept = path.join(dir, 'answers');
    const first = image(async () => ok(B11669), kept);
    expect(await known(first)).toContain('--load-mode');
    expect(first.printed).toEqual([['llama-server', '--help']]);
    await eventually('the answer is kept', async () => (await readdir(kept).catch(() => [])).some((name) => !name.startsWith('.')));
    const again = image(async () => fail('retry', 'RuntimeRefused', 'It is not asked'), kept);
    expect(await again.flagsOf(REFERENCE)).toContain('--load-mode');
    expect(again.printed).toEqual([]);
    const other = image(async () => ok(NEWER), kept, `sha256:${'b'.repeat(64)}`);
    expect(await known(other)).toContain('--think-twice');
  });

  test.each([
    ['cannot be run', async () => fail('retry', 'RuntimeRefused', 'No such program')],
    ['never answers', async () => new Promise<never>(() => undefined)],
  ] as const)('that %s is not known, and nothing waits for it', async (_what, answer) => {
    const asked = image(answer, path.join(dir, 'not-written'));
    expect(await known(asked)).toBeUndefined();
    expect(await asked.flagsOf(REFERENCE)).toBeUndefined();
  });

  test('is asked again where what was kept cannot be read', async () => {
    const kept = path.join(dir, 'damaged');
    const file = path.join(kept, `gguf-${'a'.repeat(64)}.txt`);
    await mkdir(kept);
    await writeFile(file, '--port N');
    expect(await known(image(async () => ok(B11669), kept))).toContain('--load-mode');
    await eventually('the answer is kept', async () => (await readFile(file, 'utf8')) === B11669);
  });

  test('that cannot be kept is known all the same', async () => {
    const kept = path.join(dir, 'no-directory');
    await writeFile(kept, '');
    expect(await known(image(async () => ok(B11669), kept))).toContain('--load-mode');
  });
});
