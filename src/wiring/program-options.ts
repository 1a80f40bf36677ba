/**
 * Asks programs for their flags, before anything is stopped for them: each binary once, each image once and for all.
 * Observations never wait for an answer. Where there is none, the flags are not known.
 */
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { makeSubdirectory, succeeds, writeFileAtomically } from '../files/write-file.ts';
import { addWake } from '../platform/clock.ts';
import { outputOf } from '../providers/host-program.ts';
import type { ProgramOptions, Provider } from '../providers/provider.ts';
import type { ImageReference, Runtime, RuntimeFacts, Wake } from '../reconciler/ports.ts';
import { ok } from '../schema/words/failure.ts';
import type { OwnModelDeps } from './own-models.ts';

export interface ProgramOptionDeps extends Pick<OwnModelDeps, 'providers' | 'programs' | 'imagesOf' | 'env'> {
  /** Programs that slots name themselves. Default: none do. */
  readonly pathsOf?: (provider: Provider) => readonly string[];
  /** Keeps what images printed, whose ids stand for the same program forever. */
  readonly cacheDir: string;
  /** Default: 15 s. A program that hangs delays its first start for so long. */
  readonly withinMs?: number;
}

const ANSWER_WITHIN_MS = 15_000;
/** After an image could not be run. A binary is asked again when it changes. */
const AGAIN_MS = 60_000;

/** One program in one version. */
interface Subject {
  /** As in `RuntimeFacts.options`. */
  readonly name: string;
  /** Changes with the program. */
  readonly key: string;
  /** Where the answer is kept. */
  readonly file?: string;
  readonly ask: (signal: AbortSignal) => Promise<string | undefined>;
}

export function withProgramOptions(runtime: Runtime, deps: ProgramOptionDeps): Runtime {
  const askers = Object.values(deps.providers).flatMap((provider) =>
    provider.help === undefined ? [] : [{ provider, help: provider.help, answers: new Map<string, Answer>() }],
  );
  const wakes = new Set<Wake>();

  const ask = async ({ help, answers }: Asker, { key, file, ask: print }: Subject): Promise<void> => {
    const text = await within(deps.withinMs ?? ANSWER_WITHIN_MS, print);
    const options = text === undefined ? undefined : help.parse(text);
    answers.set(key, { options, at: performance.now() });
    for (const wake of wakes) wake();
    // If it cannot be kept, the image is asked again after a restart.
    if (options !== undefined && text !== undefined && file !== undefined) await succeeds(keep(file, text));
  };
  const lookUp = async (asker: Asker, subject: Subject): Promise<ProgramOptions | 'asking' | undefined> => {
    const { answers, help } = asker;
    const { key, file } = subject;
    const kept = answers.has(key) || file === undefined ? undefined : help.parse(await readFile(file, 'utf8').catch(() => ''));
    if (kept !== undefined) answers.set(key, { options: kept, at: performance.now() });
    const answer = answers.get(key);
    const isStale = file !== undefined && answer?.options === undefined && performance.now() - (answer?.at ?? -Infinity) > AGAIN_MS;
    if (answer === undefined || isStale) {
      // While it is asked again, what was found before holds.
      answers.set(key, { options: answer === undefined ? 'asking' : undefined, at: performance.now() });
      void ask(asker, subject);
    }
    return answers.get(key)?.options;
  };
  const optionsOf = async ({ images }: RuntimeFacts): Promise<NonNullable<RuntimeFacts['options']>> => {
    const found = new Map<string, ProgramOptions | 'asking'>();
    for (const asker of askers)
      for (const subject of await subjectsOf(asker.provider, images, deps, runtime)) {
        const options = await lookUp(asker, subject);
        if (options !== undefined) found.set(subject.name, options);
      }
    return found;
  };
  return {
    ...runtime,
    async observe(images, signal) {
      const facts = await runtime.observe(images, signal);
      return facts.ok ? ok({ ...facts.value, options: await optionsOf(facts.value) }) : facts;
    },
    changes(wake, signal) {
      addWake(wakes, wake, signal);
      runtime.changes(wake, signal);
    },
  };
}

type Answer = Readonly<{ options: ProgramOptions | 'asking' | undefined; at: number }>;
type Asker = Readonly<{ provider: Provider; help: NonNullable<Provider['help']>; answers: Map<string, Answer> }>;

async function subjectsOf(
  provider: Provider,
  images: RuntimeFacts['images'],
  { programs, imagesOf, pathsOf = () => [], env, cacheDir }: ProgramOptionDeps,
  { traits, print }: Runtime,
): Promise<readonly Subject[]> {
  const { kind, program, help } = provider;
  const args = help?.arguments ?? [];
  if (!traits.images) {
    const shared = await programs?.find((each) => each.kind === kind)?.find?.();
    const files = [
      ...(shared === undefined ? [] : [[kind, shared] as const]),
      ...new Set(pathsOf(provider)).values().map((own) => [own, own] as const),
    ];
    const subjects = files.map(async ([name, file]): Promise<readonly Subject[]> => {
      const found = await stat(file).catch(() => undefined);
      if (found === undefined) return [];
      const printHere = async (signal: AbortSignal): Promise<string> => {
        const { stdout, stderr } = await outputOf(file, args, env, { signal });
        return `${stdout}\n${stderr}`;
      };
      return [{ name, key: [file, found.ino, found.mtimeMs, found.size].join(' '), ask: printHere }];
    });
    return (await Promise.all(subjects)).flat();
  }
  const own = imagesOf(provider);
  return images.flatMap(({ reference, imageId, present }): readonly Subject[] => {
    const image: ImageReference | undefined = own.find((each) => each.reference === reference);
    if (image === undefined || !present || imageId === undefined || print === undefined) return [];
    const printThere = async (signal: AbortSignal): Promise<string | undefined> => {
      const printed = await print({ ...image, imageId }, [program, ...args], signal);
      return printed.ok ? printed.value : undefined;
    };
    return [
      { name: reference, key: imageId, file: path.join(cacheDir, `${kind}-${imageId.replace(/^sha256:/, '')}.txt`), ask: printThere },
    ];
  });
}

/** Undefined after `ms`, whatever the work does: a killed program may leave another one that keeps its output open. */
async function within(ms: number, work: (signal: AbortSignal) => Promise<string | undefined>): Promise<string | undefined> {
  const signal = AbortSignal.timeout(ms);
  const late = new Promise<undefined>((resolve) => signal.addEventListener('abort', () => resolve(undefined), { once: true }));
  return await Promise.race([work(signal).catch(() => undefined), late]);
}

async function keep(file: string, text: string): Promise<void> {
  await makeSubdirectory(path.dirname(file));
  await writeFileAtomically(file, text, { mode: 0o600 });
}
