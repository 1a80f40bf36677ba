/** The servers of git over its own protocol, HTTP and SSH, as Debian has them, for the repositories below a folder. */
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import path from 'node:path';
import { eventually } from '../eventually.ts';
import { freePort } from '../free-port.ts';
import { describeWith } from '../require/describe-with.ts';
import { GIT_ENV } from './repository.ts';

export interface GitServer {
  /** Of `config.git`. */
  readonly url: string;
  stop(): Promise<void>;
}

const EXEC_PATH = spawnSync('git', ['--exec-path'], { encoding: 'utf8' }).stdout.trim();

const accepts = async (port: number): Promise<boolean> =>
  await new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (ok: boolean): void => {
      socket.destroy();
      resolve(ok);
    };
    socket.once('connect', () => end(true)).once('error', () => end(false));
  });

async function listening(child: ChildProcess, port: number): Promise<() => Promise<void>> {
  let errors = '';
  child.stderr?.on('data', (text: Buffer) => (errors += text.toString()));
  try {
    await eventually('the server accepts connections', async () => await accepts(port));
  } catch (error) {
    throw new Error(`The server did not start: ${errors}`, { cause: error });
  }
  return async () => {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    if (child.exitCode === null && child.signalCode === null && child.kill('SIGKILL')) await ended;
  };
}

/** `git daemon`. */
export async function startGitDaemon(root: string): Promise<GitServer> {
  const port = await freePort();
  const args = ['--reuseaddr', '--export-all', `--base-path=${root}`, '--listen=127.0.0.1', `--port=${port}`, root];
  // Not "git daemon", whose child would stay when it is killed.
  const child = spawn(path.join(EXEC_PATH, 'git-daemon'), args, { env: GIT_ENV, stdio: ['ignore', 'ignore', 'pipe'] });
  return { url: `git://127.0.0.1:${port}/config.git`, stop: await listening(child, port) };
}

export interface GitHttpServer extends GitServer {
  /** `hang`: requests get no answer. A text is the credential, `user:token`, that requests need. */
  mode: 'serve' | 'hang' | { readonly credential: string };
}

/** `git http-backend`, as a web server runs it. */
export async function startGitHttp(root: string): Promise<GitHttpServer> {
  const port = await freePort();
  const answering = new Set<ServerResponse>();
  const server = createServer((req, res) => {
    answering.add(res);
    res.once('close', () => answering.delete(res));
    const { mode } = result;
    if (mode === 'hang') return;
    if (typeof mode === 'object' && req.headers.authorization !== `Basic ${Buffer.from(mode.credential).toString('base64')}`) {
      res.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
      return;
    }
    runBackend(root, req, res);
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const result: GitHttpServer = {
    url: `http://127.0.0.1:${port}/config.git`,
    mode: 'serve',
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return result;
}

function runBackend(root: string, req: IncomingMessage, res: ServerResponse): void {
  const { pathname, search } = new URL(req.url ?? '/', 'http://localhost');
  const env = {
    ...GIT_ENV,
    GIT_PROJECT_ROOT: root,
    GIT_HTTP_EXPORT_ALL: '1',
    PATH_INFO: pathname,
    QUERY_STRING: search.slice(1),
    REQUEST_METHOD: req.method ?? 'GET',
    CONTENT_TYPE: req.headers['content-type'] ?? '',
    HTTP_CONTENT_ENCODING: req.headers['content-encoding'] ?? '',
    GIT_PROTOCOL: String(req.headers['git-protocol'] ?? ''),
  };
  const backend = spawn(path.join(EXEC_PATH, 'git-http-backend'), { env, stdio: ['pipe', 'pipe', 'ignore'] });
  backend.stdin.on('error', () => undefined);
  req.pipe(backend.stdin);
  let head = Buffer.alloc(0);
  backend.stdout.on('data', (chunk: Buffer) => {
    if (res.headersSent) return void res.write(chunk);
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf('\r\n\r\n');
    if (end < 0) return;
    const lines = head
      .toString('latin1', 0, end)
      .split('\r\n')
      .map((line) => line.split(': ', 2));
    const status = Number(lines.find(([name]) => name === 'Status')?.[1]?.slice(0, 3) ?? 200);
    res.writeHead(status, Object.fromEntries(lines.filter(([name]) => name !== 'Status')));
    res.write(head.subarray(end + 4));
  });
  backend.on('close', () => res.end());
}

export interface GitSshServer extends GitServer {
  /** The private key that may read. */
  readonly keyFile: string;
  /** A private key that may not. */
  readonly strangerFile: string;
  readonly knownHosts: string;
  /** Starts the server again, with another key of the host. */
  replaceHostKey(): Promise<void>;
}

const SSHD = ['/usr/sbin/sshd', '/usr/local/sbin/sshd'].find((file) => existsSync(file));
const REASON = 'there is no sshd: install "openssh-server"';

export const makeKey = (file: string): void =>
  void execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'anna@example.com', '-f', file], { stdio: 'ignore' });

export async function startGitSsh(root: string): Promise<GitSshServer> {
  const directory = await mkdtemp(path.join(tmpdir(), 'svc-sshd-'));
  const fileOf = (name: string): string => path.join(directory, name);
  const port = await freePort();
  const { username, uid } = userInfo();
  for (const name of ['host', 'host2', 'key', 'stranger']) makeKey(fileOf(name));
  await writeFile(fileOf('authorized'), await readFile(fileOf('key.pub')));
  await chmod(fileOf('authorized'), 0o600);
  // Where the server separates privileges.
  if (uid === 0) mkdirSync('/run/sshd', { recursive: true });
  const start = async (hostKey: string): Promise<() => Promise<void>> => {
    const lines = [
      `Port ${port}`,
      'ListenAddress 127.0.0.1',
      `HostKey ${fileOf(hostKey)}`,
      `AuthorizedKeysFile ${fileOf('authorized')}`,
      `PidFile ${fileOf('pid')}`,
      'StrictModes no',
      'UsePAM no',
      'PasswordAuthentication no',
      'PermitRootLogin prohibit-password',
    ];
    await writeFile(fileOf('config'), `${lines.join('\n')}\n`);
    const child = spawn(SSHD ?? '', ['-D', '-e', '-f', fileOf('config')], { env: GIT_ENV, stdio: ['ignore', 'ignore', 'pipe'] });
    return await listening(child, port);
  };
  let stop = await start('host');
  await writeFile(fileOf('known'), `[127.0.0.1]:${port} ${await readFile(fileOf('host.pub'), 'utf8')}`);
  return {
    url: `ssh://${username}@127.0.0.1:${port}${root}/config.git`,
    keyFile: fileOf('key'),
    strangerFile: fileOf('stranger'),
    knownHosts: fileOf('known'),
    async replaceHostKey() {
      await stop();
      stop = await start('host2');
    },
    async stop() {
      await stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

export function describeWithSshd(name: string, suite: () => void): void {
  describeWith({ isThere: SSHD !== undefined, word: 'sshd', what: 'has a server of SSH', reason: REASON }, name, suite);
}
