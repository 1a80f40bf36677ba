/**
 * A copy of the newest commit, as a bare repository in the state directory. Objects are read from it and nothing is
 * checked out, so hooks, filters, links, submodules and LFS have no effect. It may be deleted at any time.
 */
import { spawn } from 'node:child_process';
import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { foreignEncoding, readRegularFile, TEXT_BYTES } from '../../files/regular-file.ts';
import { makeSubdirectory } from '../../files/write-file.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import type { Settings } from '../../schema/settings/settings.ts';
import { COMMIT_FORMAT, explainFetch, isDamaged, lastLine, schemeOf, sshCommand } from './decide/git-words.ts';
import type { Commit, Sourced, SourceProblem, TreeEntry, TreeSource } from './ports.ts';

export interface GitRepositoryOptions {
  readonly settings: GitSettings;
  /** `<state>/source`. */
  readonly directory: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** How long a fetch may take. */
  readonly fetchTimeoutMs?: number;
}

export type GitSettings = Pick<
  Settings,
  'SVC_GIT_REF' | 'SVC_GIT_PATH' | 'SVC_GIT_KEY' | 'SVC_GIT_KNOWN_HOSTS' | 'SVC_GIT_ALLOWED_SIGNERS'
> & { readonly SVC_GIT_URL: string };

interface Ran {
  /** Undefined if it was ended, or could not be started. */
  readonly code: number | undefined;
  readonly stdout: Buffer;
  readonly stderr: string;
  readonly timedOut: boolean;
  readonly isMissing: boolean;
}

interface RunOptions {
  readonly signal: AbortSignal;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string | Buffer;
  readonly timeoutMs?: number;
}

/** Enough for a large repository over a slow line. A server that sends nothing is noticed sooner. */
const FETCH_TIMEOUT_MS = 10 * 60_000;
/** Reading objects of the disk takes milliseconds. */
const READ_TIMEOUT_MS = 60_000;
/** A list of thousands of entries, or all files of a commit. */
const MOST_OUTPUT_BYTES = 96 * 2 ** 20;
const MOST_STDERR = 16_384;
/** What a proxy or a private authority of this machine needs. All other variables could change what git does. */
const PASSED = [
  'PATH',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'HTTPS_PROXY',
  'NO_PROXY',
  'ALL_PROXY',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'GIT_SSL_CAINFO',
];
const HEAD = 'refs/svc/head';
const CONFIG = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'gc.autoDetach=false',
  'gc.pruneExpire=now',
  'http.followRedirects=false',
  'http.lowSpeedLimit=1',
  'http.lowSpeedTime=30',
  'submodule.recurse=false',
  'gpg.x509.program=/bin/false',
];

export function createGitRepository(options: GitRepositoryOptions): TreeSource {
  const { settings, directory, fetchTimeoutMs = FETCH_TIMEOUT_MS } = options;
  const { SVC_GIT_URL: url, SVC_GIT_REF: ref, SVC_GIT_PATH: root } = settings;
  const repository = path.join(directory, 'repository.git');
  const git = async (args: readonly string[], run: RunOptions): Promise<Ran> =>
    await runGit(['-c', `safe.directory=${repository}`, ...CONFIG.flatMap((each) => ['-c', each]), `--git-dir=${repository}`, ...args], {
      ...run,
      env: { ...baseEnv(options), ...run.env },
    });

  async function fetchOnce(signal: AbortSignal): Promise<Ran> {
    await makeSubdirectory(directory, 0o700);
    const entries = await readdir(repository).catch((): string[] => []);
    if (!entries.includes('HEAD')) {
      const made = await git(['init', '--quiet', '--bare', '--template=', repository], { signal });
      if (made.code !== 0) return made;
    }
    const args = ['--depth=1', '--no-tags', '--no-recurse-submodules', '--no-write-fetch-head', '--force', '--quiet'];
    const env = await credentialEnv(settings);
    return await git(['fetch', ...args, '--', url, `+${ref}:${HEAD}`], { signal, env, timeoutMs: fetchTimeoutMs });
  }

  async function describeHead(signal: AbortSignal): Promise<Sourced<Commit>> {
    const shown = await git(['log', '-1', '--no-show-signature', `--format=${COMMIT_FORMAT}`, HEAD], { signal });
    const [commit = '', seconds = '', author = '', subject = ''] = shown.stdout.toString('utf8').trimEnd().split('\0');
    if (shown.code !== 0) return problem('FetchFailed', `The commit cannot be read: ${lastLine(shown.stderr)}`);
    return { ok: true, value: { commit, at: Number(seconds) * 1000, author, subject: subject.slice(0, 200) } };
  }

  return {
    async fetch(signal) {
      try {
        let ran = await fetchOnce(signal);
        // A git that was killed leaves locks and parts of files.
        if (ran.timedOut || isDamaged(ran.stderr)) await rm(repository, { recursive: true, force: true });
        if (!ran.timedOut && isDamaged(ran.stderr)) ran = await fetchOnce(signal);
        if (ran.isMissing)
          return problem('GitMissing', 'The program "git" is not installed: install it, for example with "apt install git"');
        if (ran.code !== 0)
          return { ok: false, problem: explainFetch(ran.stderr, { url, ref }, ran.timedOut ? fetchTimeoutMs : undefined) };
        return await describeHead(signal);
      } catch (error) {
        return problem('FetchFailed', `"${url}" cannot be fetched: ${messageOf(error)}`);
      }
    },
    async verify(commit, signal) {
      const file = settings.SVC_GIT_ALLOWED_SIGNERS;
      if (file === undefined) return { ok: true, value: undefined };
      const trust = await openTrust(file, options, signal);
      if (!trust.ok) return trust;
      const { env, allowedSigners } = trust.value;
      const ran = await git(['-c', `gpg.ssh.allowedSignersFile=${allowedSigners}`, 'verify-commit', commit], { signal, env });
      if (ran.code === 0) return { ok: true, value: undefined };
      const why = ran.stderr.trim() === '' ? 'it is not signed' : `git says "${lastLine(ran.stderr)}"`;
      return problem('SignatureRefused', `No key in "${file}" has signed the commit (${why}): sign it, or add the key of its author`);
    },
    async list(commit, within, signal) {
      const tree = root === '.' ? commit : `${commit}:${root}`;
      const ran = await git(['ls-tree', '-r', '-l', '-z', '--full-tree', tree, '--', ...within], { signal });
      if (ran.code !== 0)
        return problem(
          'CommitInvalid',
          `The commit has no directory "${root}", or it cannot be read: check "SVC_GIT_PATH" (${lastLine(ran.stderr)})`,
        );
      return { ok: true, value: parseTree(ran.stdout.toString('utf8')) };
    },
    async read(ids, signal) {
      const ran = await git(['cat-file', '--batch'], { signal, input: ids.map((id) => `${id}\n`).join('') });
      const contents = ran.code === 0 ? splitBatch(ran.stdout, ids.length) : undefined;
      return contents === undefined
        ? problem('FetchFailed', `The files of the commit cannot be read: ${lastLine(ran.stderr)}`)
        : { ok: true, value: contents };
    },
  };
}

const problem = (reason: SourceProblem['reason'], message: string): { readonly ok: false; readonly problem: SourceProblem } => ({
  ok: false,
  problem: { reason, message },
});

function baseEnv({ settings, directory, env }: GitRepositoryOptions): Readonly<Record<string, string>> {
  const { SVC_GIT_URL: url, SVC_GIT_KEY: keyFile, SVC_GIT_KNOWN_HOSTS: knownHosts } = settings;
  const passed = PASSED.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]));
  return {
    ...Object.fromEntries(passed),
    HOME: directory,
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: '/bin/false',
    SSH_ASKPASS_REQUIRE: 'never',
    GIT_ALLOW_PROTOCOL: schemeOf(url),
    GIT_SSH_COMMAND: sshCommand({ keyFile, knownHosts, learnedFile: path.join(directory, 'known_hosts') }),
  };
}

/** For HTTP, the file of the key has `user:token`. The environment hides it from other users, unlike arguments. */
async function credentialEnv({ SVC_GIT_URL: url, SVC_GIT_KEY: file }: GitSettings): Promise<Readonly<Record<string, string>>> {
  if (file === undefined || !schemeOf(url).startsWith('http')) return {};
  const basic = Buffer.from((await readRegularFile(file)).trim()).toString('base64');
  return { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: `http.${url}.extraHeader`, GIT_CONFIG_VALUE_0: `Authorization: Basic ${basic}` };
}

interface Trust {
  readonly env: Readonly<Record<string, string>>;
  readonly allowedSigners: string;
}

/** Whom git trusts: lines of SSH's `allowed_signers`, or public keys of OpenPGP. Nobody else, with either kind. */
async function openTrust(file: string, { directory, env }: GitRepositoryOptions, signal: AbortSignal): Promise<Sourced<Trust>> {
  const home = path.join(directory, 'gnupg');
  try {
    const isOpenPgp = (await readRegularFile(file)).includes('-----BEGIN PGP PUBLIC KEY BLOCK-----');
    // A key that was taken out of the file must not stay trusted.
    await rm(home, { recursive: true, force: true });
    await makeSubdirectory(home, 0o700);
    if (!isOpenPgp) return { ok: true, value: { env: { GNUPGHOME: home }, allowedSigners: file } };
    const args = ['--homedir', home, '--batch', '--no-autostart', '--quiet', '--import', file];
    const ran = await runProgram('gpg', args, { signal, env: { PATH: env['PATH'] ?? '', HOME: directory, LC_ALL: 'C' } });
    if (ran.isMissing) return problem('SignatureRefused', 'Signatures of OpenPGP cannot be checked without the program "gpg": install it');
    if (ran.code !== 0) return problem('SignatureRefused', `The keys in "${file}" cannot be read: ${lastLine(ran.stderr)}`);
    return { ok: true, value: { env: { GNUPGHOME: home }, allowedSigners: '/dev/null' } };
  } catch (error) {
    return problem('SignatureRefused', `"SVC_GIT_ALLOWED_SIGNERS" cannot be used: ${messageOf(error)}`);
  }
}

const KINDS: Readonly<Record<string, TreeEntry['kind']>> = { '120000': 'link', '160000': 'submodule' };

/** Lines such as `100644 blob 1a2b…      12<TAB>slots/img.toml`. */
function parseTree(text: string): readonly TreeEntry[] {
  return text.split('\0').flatMap((line) => {
    const found = /^(\d{6}) (?:blob|commit) ([0-9a-f]+) +(\d+|-)\t(.+)$/s.exec(line);
    if (found === null) return [];
    const [, mode = '', id = '', size = '', name = ''] = found;
    return [{ path: name, kind: KINDS[mode] ?? 'file', id, sizeBytes: Number(size === '-' ? 0 : size) }];
  });
}

/** Each content is preceded by `<id> blob <bytes>`. Undefined if one is missing. */
function splitBatch(output: Buffer, count: number): readonly Buffer[] | undefined {
  const contents: Buffer[] = [];
  let at = 0;
  while (contents.length < count) {
    const end = output.indexOf('\n', at);
    const size = /^[0-9a-f]+ blob (\d+)$/.exec(output.toString('latin1', at, end))?.[1];
    if (end < 0 || size === undefined) return undefined;
    contents.push(output.subarray(end + 1, end + 1 + Number(size)));
    at = end + 1 + Number(size) + 1;
  }
  return contents;
}

const runGit = async (args: readonly string[], options: RunOptions): Promise<Ran> => await runProgram('git', args, options);

/** Never rejects. The program is the leader of a group, so that what it starts ends with it. */
export async function runProgram(
  program: string,
  args: readonly string[],
  { signal, env, input = '', timeoutMs = READ_TIMEOUT_MS }: RunOptions,
): Promise<Ran> {
  const chunks: Buffer[] = [];
  let [stderr, bytes, timedOut, isMissing] = ['', 0, false, false];
  return await new Promise((resolve) => {
    const child = spawn(program, args, { env, cwd: '/', detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
    const end = (): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has ended.
      }
    };
    const timer = setTimeout(() => {
      timedOut = true;
      end();
    }, timeoutMs);
    const done = (code: number | undefined): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve({ code, stdout: Buffer.concat(chunks), stderr, timedOut, isMissing });
    };
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    child.on('error', (error) => {
      isMissing = codeOf(error) === 'ENOENT';
      stderr += messageOf(error);
      done(undefined);
    });
    child.on('close', (code) => done(code ?? undefined));
    child.stdout.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= MOST_OUTPUT_BYTES) chunks.push(chunk);
      else end();
    });
    child.stderr.on('data', (chunk: Buffer) => (stderr = `${stderr}${chunk.toString('utf8')}`.slice(-MOST_STDERR)));
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
  });
}

/** A secret is small, and what decrypts it may ask a server for the key. */
const DECRYPT_TIMEOUT_MS = 30_000;

/** Gives the file to a command on its standard input, and takes the text from its output. Settings stay here. */
export const createDecrypt =
  ([program = '', ...args]: readonly string[], env: GitRepositoryOptions['env']) =>
  async (_path: string, bytes: Buffer, signal: AbortSignal): Promise<{ readonly text: string } | { readonly problem: string }> => {
    const own = Object.entries(env).flatMap(([name, value]) =>
      name.startsWith('SVC_') || value === undefined ? [] : [[name, value] as const],
    );
    const ran = await runProgram(program, args, { signal, env: Object.fromEntries(own), input: bytes, timeoutMs: DECRYPT_TIMEOUT_MS });
    if (ran.isMissing) return { problem: `The program "${program}" of "SVC_GIT_DECRYPT" is not installed: install it` };
    if (ran.code !== 0) return { problem: `"${program}" cannot decrypt this file: ${lastLine(ran.stderr)}` };
    const encoding = foreignEncoding(ran.stdout);
    if (encoding !== undefined || ran.stdout.length > TEXT_BYTES) return { problem: 'The decrypted text is too large, or not UTF-8' };
    return { text: ran.stdout.toString('utf8') };
  };
