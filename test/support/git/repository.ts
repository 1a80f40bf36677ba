/** A real repository of git, with commits of tests. No configuration of the user takes part. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export const GIT_ENV = {
  ...process.env,
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_AUTHOR_NAME: 'Anna',
  GIT_AUTHOR_EMAIL: 'anna@example.com',
  GIT_COMMITTER_NAME: 'Anna',
  GIT_COMMITTER_EMAIL: 'anna@example.com',
};

/** `null` deletes a file; `{ link }` is a symbolic link. */
export type Changes = Readonly<Record<string, string | Buffer | null | { readonly link: string }>>;

export interface TestRepository {
  /** The folder that servers export. */
  readonly root: string;
  /** The bare repository: `<root>/config.git`. */
  readonly bare: string;
  readonly work: string;
  readonly url: string;
  git(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<string>;
  /** Commits and pushes to `main`. Returns the commit. */
  commit(subject: string, changes: Changes, args?: readonly string[], env?: Readonly<Record<string, string>>): Promise<string>;
  push(...args: readonly string[]): Promise<void>;
  /** Writes a file without committing it. */
  write(name: string, content: Changes[string]): Promise<void>;
  remove(): Promise<void>;
}

export async function createTestRepository(): Promise<TestRepository> {
  const root = await mkdtemp(path.join(tmpdir(), 'svc-git-'));
  const [bare, work] = [path.join(root, 'config.git'), path.join(root, 'work')];
  const git = async (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> =>
    (await run('git', ['-C', work, ...args], { env: { ...GIT_ENV, ...env }, maxBuffer: 64 * 2 ** 20 })).stdout.trim();
  await mkdir(work);
  await git(['init', '--quiet', '--bare', '--initial-branch=main', bare]);
  await git(['init', '--quiet', '--initial-branch=main']);
  await git(['remote', 'add', 'origin', bare]);
  const push = async (...args: readonly string[]): Promise<void> => void (await git(['push', '--quiet', ...args, 'origin', 'HEAD:main']));
  const write = async (name: string, content: Changes[string] = null): Promise<void> => {
    const place = path.join(work, name);
    await rm(place, { recursive: true, force: true });
    if (content === null) return;
    await mkdir(path.dirname(place), { recursive: true });
    if (typeof content === 'string' || Buffer.isBuffer(content)) await writeFile(place, content);
    else await symlink(content.link, place);
  };
  return {
    root,
    bare,
    work,
    url: `file://${bare}`,
    git,
    push,
    write,
    async commit(subject, changes, args = [], env = {}) {
      for (const [name, content] of Object.entries(changes)) await write(name, content);
      await git(['add', '--all']);
      await git(['commit', '--quiet', '--allow-empty', '-m', subject, ...args], env);
      await push();
      return await git(['rev-parse', 'HEAD']);
    },
    remove: async () => await rm(root, { recursive: true, force: true }),
  };
}

/** `provider` is needed unless the slot has a built-in name. */
export const slotText = (priority: number, more = '', provider?: string): string =>
  `# slot\nenabled = false\n${provider === undefined ? '' : `provider = "${provider}"\n`}backend = "cpu"\npriority = ${priority}\n${more}\n[model]\ndefault = "demo-fox"\n`;
