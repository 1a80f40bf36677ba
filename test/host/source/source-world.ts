/** A source on a real repository and real files, in directories of its own. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createDecrypt, createGitRepository, type GitSettings } from '../../../src/host/source/git-repository.ts';
import type { Sourced } from '../../../src/host/source/ports.ts';
import { createGitSource } from '../../../src/host/source/git-source.ts';
import { createSourceFiles } from '../../../src/host/source/source-files.ts';
import type { GitSourceOptions } from '../../../src/host/source/source-steps.ts';
import { createClock } from '../../../src/platform/clock.ts';
import { createTestRepository, type TestRepository } from '../../support/git/repository.ts';

export interface Given extends Partial<Pick<GitSourceOptions, 'window' | 'attribute'>> {
  readonly selfHeal?: 'on' | 'off';
  readonly directory?: string;
  readonly decrypt?: readonly string[];
  readonly configDir?: string;
  readonly intervalMs?: number;
  /** Called when the configuration is about to change. */
  readonly onChange?: () => Promise<void>;
}

export const never = new AbortController().signal;

export interface OpenedRepository {
  readonly repository: Pick<TestRepository, 'url'>;
  /** The copy is made below it. */
  readonly state: string;
  readonly settings: Partial<GitSettings>;
  readonly fetchTimeoutMs: number | undefined;
}

/** The adapter alone, by default without a key and for any signer. */
export const openRepository = ({ repository, state, settings, fetchTimeoutMs = 30_000 }: OpenedRepository) =>
  createGitRepository({
    settings: { ...settingsOf(repository), ...settings },
    directory: path.join(state, 'source'),
    env: process.env,
    fetchTimeoutMs,
  });

const settingsOf = ({ url }: Pick<TestRepository, 'url'>) => ({
  SVC_GIT_URL: url,
  SVC_GIT_REF: 'main',
  SVC_GIT_PATH: '.',
  SVC_GIT_KEY: undefined,
  SVC_GIT_KNOWN_HOSTS: undefined,
  SVC_GIT_ALLOWED_SIGNERS: undefined,
});

export function valueOf<T>(result: Sourced<T>): T {
  if (!result.ok) throw new Error(result.problem.message);
  return result.value;
}

export const problemOf = (result: Sourced<unknown>): string => (result.ok ? 'none' : `${result.problem.reason}: ${result.problem.message}`);

export type SourceWorld = Awaited<ReturnType<typeof openSourceWorld>>;

export async function openSourceWorld() {
  const repository = await createTestRepository();
  const root = await mkdtemp(path.join(tmpdir(), 'svc-source-'));
  const config = path.join(root, 'config');
  await mkdir(path.join(config, 'slots'), { recursive: true });
  const logged: string[] = [];
  const note = (_facts: object, message: string): void => void logged.push(message);
  return {
    repository,
    root,
    config,
    logged,
    async open({ selfHeal = 'off', directory = path.join(root, 'source'), configDir = config, intervalMs = 60_000, ...given }: Given = {}) {
      const settings = {
        ...settingsOf(repository),
        SVC_GIT_INTERVAL: intervalMs,
        SVC_GIT_SELF_HEAL: selfHeal,
      };
      const opened = createGitSource({
        clock: createClock(),
        ...(given.window === undefined ? {} : { window: given.window }),
        ...(given.attribute === undefined ? {} : { attribute: given.attribute }),
        settings,
        tree: createGitRepository({ settings, directory, env: process.env }),
        files: createSourceFiles({
          configDir,
          directory,
          async exclusive(work) {
            await given.onChange?.();
            return await work();
          },
        }),
        log: { info: note, warn: note },
        isSigned: async () => false,
        decrypt: given.decrypt && createDecrypt(given.decrypt, process.env),
      });
      await opened.open();
      return { ...opened, sync: async (force = false) => await opened.source.sync({ force }) };
    },
    present: async (name = 'primary', directory = config): Promise<string | undefined> =>
      await readFile(path.join(directory, 'slots', `${name}.toml`), 'utf8').catch(() => undefined),
    edit: async (text: string, name = 'primary'): Promise<void> => await writeFile(path.join(config, 'slots', `${name}.toml`), text),
    async dispose(): Promise<void> {
      await repository.remove();
      await rm(root, { recursive: true, force: true });
    },
  };
}
