/**
 * A local server that speaks the API of the Hugging Face Hub and breaks on purpose. Files may come from a second server, as the real Hub redirects to a
 * storage host. What each request asked for and how much it was sent is in `log`. The shapes are those of the real API, see `hub-client.ts`.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { VirtualFile } from './virtual-file.ts';

export interface FakeRepo {
  /** `owner/repo`. */
  readonly name: string;
  commit: string;
  readonly files: Map<string, VirtualFile>;
  readonly license?: string;
  readonly gated?: false | 'auto' | 'manual';
  /** Only requests with this token see the repository. */
  readonly token?: string;
  readonly private?: boolean;
  readonly downloads?: number;
  readonly likes?: number;
  readonly task?: string;
  /** Replaces or adds fields of the results of a search. */
  readonly found?: Readonly<Record<string, unknown>>;
}

/** How one response breaks. Without a fault, it is what the Hub sends. */
export interface Fault {
  /** Answer with this status, these headers and this body only. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** Answer nothing at all, or a space every 100 ms. */
  readonly hangs?: true | 'drips';
  /** Close the connection after so many bytes of the body. */
  readonly cutAfter?: number;
  readonly range?: 'ignored' | 'wrong-header' | 'wrong-content';
  /** Send the bytes of another file. */
  readonly file?: VirtualFile;
  readonly etag?: string;
  /** Say another size than there is. */
  readonly sizeBytes?: number;
  readonly encoding?: string;
  /** Send nothing after the head. */
  readonly silent?: true;
}

export interface LoggedRequest {
  readonly server: 'hub' | 'storage';
  readonly path: string;
  readonly range: string | undefined;
  readonly authorization: string | undefined;
  /** Bytes of the body that the operating system took. */
  sentBytes: number;
}

export interface FakeHub {
  readonly url: string;
  readonly storageUrl: string;
  readonly repos: Map<string, FakeRepo>;
  readonly log: LoggedRequest[];
  /** Asked for each request. */
  fault: (request: LoggedRequest) => Fault | undefined;
  /** Of each connection; undefined: as fast as possible. */
  bytesPerSecond: number | undefined;
  /** Requests for files, in their order. */
  fileRequests(): readonly LoggedRequest[];
  sentBytes(): number;
  close(): Promise<void>;
}

export interface FakeHubOptions {
  readonly repos?: readonly FakeRepo[];
  /** Files come from another host: a redirect, as the real Hub does. */
  readonly redirects?: boolean;
  /** Entries on one page of a list. */
  readonly pageSize?: number;
}

const CHUNK = 65_536;

export async function startFakeHub({ repos = [], redirects = true, pageSize = 1000 }: FakeHubOptions = {}): Promise<FakeHub> {
  const log: LoggedRequest[] = [];
  const byName = new Map(repos.map((repo) => [repo.name, repo]));
  const note = (server: LoggedRequest['server'], { url = '', headers }: IncomingMessage): LoggedRequest => {
    const entry = { server, path: decodeURIComponent(url), range: headers.range, authorization: headers.authorization, sentBytes: 0 };
    log.push(entry);
    return entry;
  };
  const hubServer = createServer((request, response) => {
    const entry = note('hub', request);
    const fault = hub.fault(entry);
    if (fault?.hangs === 'drips') return drip(response);
    if (fault?.hangs === true) return;
    if (fault?.status !== undefined) return void response.writeHead(fault.status, fault.headers).end(fault.body);
    answerHub({ hub, pageSize, redirects }, entry, fault, response);
  });
  const storageServer = createServer((request, response) => {
    const entry = note('storage', request);
    const fault = hub.fault(entry);
    if (fault?.status !== undefined) return void response.writeHead(fault.status, fault.headers).end();
    const [, name = '', path = ''] = /^\/([^/]+\/[^/]+)\/([^?]+)/.exec(entry.path) ?? [];
    const file = byName.get(name)?.files.get(path);
    if (file === undefined) return void response.writeHead(404).end();
    sendFile(hub, entry, file, fault, response);
  });
  const hub: FakeHub = {
    url: await listen(hubServer),
    // The same machine under another name, as for a client another host is.
    storageUrl: (await listen(storageServer)).replace('127.0.0.1', 'localhost'),
    repos: byName,
    log,
    fault: () => undefined,
    bytesPerSecond: undefined,
    fileRequests: () => log.filter(({ server, path }) => server === 'storage' || (!redirects && path.includes('/resolve/'))),
    sentBytes: () => log.reduce((sum, { sentBytes }) => sum + sentBytes, 0),
    async close() {
      await Promise.all([hubServer, storageServer].map(close));
    },
  };
  return hub;
}

function drip(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  const timer = setInterval(() => response.write(' '), 100);
  response.on('close', () => clearInterval(timer));
}

interface Answering {
  readonly hub: FakeHub;
  readonly pageSize: number;
  readonly redirects: boolean;
}

function answerHub(
  { hub, pageSize, redirects }: Answering,
  entry: LoggedRequest,
  fault: Fault | undefined,
  response: ServerResponse,
): void {
  const url = new URL(entry.path, hub.url);
  if (url.pathname === '/api/models') return sendFound(hub, entry, url, response);
  const [, name = '', rest = ''] = /^\/(?:api\/models\/)?([^/]+\/[^/]+)(\/.*)$/.exec(url.pathname) ?? [];
  const repo = hub.repos.get(name);
  const authorized = repo?.token === undefined || entry.authorization === `Bearer ${repo.token}`;
  if (repo === undefined || (!authorized && repo.gated === undefined)) return refuse(response, 401, 'RepoNotFound', 'Repository not found');
  const isApi = url.pathname.startsWith('/api/');
  if (isApi && rest.startsWith('/revision/')) {
    const cardData = repo.license === undefined ? {} : { license: repo.license };
    return sendJson(response, { id: repo.name, sha: repo.commit, gated: repo.gated ?? false, private: false, cardData, tags: [] });
  }
  if (isApi && (rest === `/tree/${repo.commit}` || rest === '/tree/main')) return sendTree(hub, repo, { url, pageSize }, response);
  const [, commit = '', path = ''] = /^\/resolve\/([^/]+)\/(.+)$/.exec(rest) ?? [];
  const file = repo.files.get(path);
  if (!authorized) return refuse(response, 403, 'GatedRepo', 'Access to this model is restricted');
  if (commit !== repo.commit && commit !== 'main') return refuse(response, 404, 'RevisionNotFound', 'Revision not found');
  if (file === undefined) return refuse(response, 404, 'EntryNotFound', 'Entry not found');
  const linked = {
    'x-repo-commit': repo.commit,
    'x-linked-size': String(fault?.sizeBytes ?? file.sizeBytes),
    'x-linked-etag': `"${fault?.etag ?? fault?.file?.sha256 ?? file.sha256}"`,
  };
  if (!redirects) return sendFile(hub, entry, file, fault, response, linked);
  response.writeHead(302, { ...linked, location: `${hub.storageUrl}/${repo.name}/${path}?signature=secret` }).end();
}

/**
 * The list of models as of November 2026: `search` has words of the name, `filter` is a tag, only the fields of `expand` are sent, and the next page is
 * named by an opaque cursor in `Link`. The Hub lists private repositories for accounts that may read them.
 */
function sendFound(hub: FakeHub, { authorization }: LoggedRequest, url: URL, response: ServerResponse): void {
  const { searchParams: query } = url;
  const words = (query.get('search') ?? '').toLowerCase().split(/\s+/);
  const limit = Number(query.get('limit') ?? 1000);
  const from = Number(Buffer.from(query.get('cursor') ?? '', 'base64').toString() || 0);
  const tags = ({ files, license }: FakeRepo): readonly string[] => [
    ...([...files.keys()].some((path) => path.endsWith('.gguf')) ? ['gguf'] : []),
    ...(license === undefined ? [] : [`license:${license}`]),
  ];
  const matching = [...hub.repos.values()]
    .filter((repo) => words.every((word) => repo.name.toLowerCase().includes(word)) && tags(repo).includes(query.get('filter') ?? 'gguf'))
    .filter(({ private: hidden, token }) => hidden !== true || authorization === `Bearer ${token}`)
    .toSorted((a, b) => (b.downloads ?? 0) - (a.downloads ?? 0));
  const page = matching.slice(from, from + limit).map((repo) => {
    const fields: Readonly<Record<string, unknown>> = {
      cardData: repo.license === undefined ? {} : { license: repo.license },
      downloads: repo.downloads ?? 0,
      gated: repo.gated ?? false,
      likes: repo.likes ?? 0,
      pipeline_tag: repo.task,
      private: repo.private ?? false,
      tags: tags(repo),
      ...repo.found,
    };
    const wanted = query.getAll('expand').map((field) => [field, fields[field]]);
    return { _id: '65f0', id: repo.name, ...Object.fromEntries(wanted), ...('id' in fields ? { id: fields['id'] } : {}) };
  });
  const next = new URL(url);
  next.searchParams.set('cursor', Buffer.from(String(from + limit)).toString('base64'));
  sendJson(response, page, from + limit < matching.length ? { link: `<${next.href}>; rel="next"` } : {});
}

function sendTree(
  hub: FakeHub,
  repo: FakeRepo,
  { url, pageSize }: { readonly url: URL; readonly pageSize: number },
  response: ServerResponse,
): void {
  const from = Number(url.searchParams.get('cursor') ?? 0);
  const all = [...repo.files].map(([path, { sizeBytes: size, sha256 }]) => ({
    type: 'file',
    path,
    size,
    oid: sha256.slice(0, 40),
    lfs: { oid: sha256, size, pointerSize: 135 },
  }));
  const next =
    from + pageSize < all.length ? `<${hub.url}${url.pathname}?recursive=true&cursor=${from + pageSize}>; rel="next"` : undefined;
  sendJson(response, all.slice(from, from + pageSize), next === undefined ? {} : { link: next });
}

function sendFile(
  hub: FakeHub,
  entry: LoggedRequest,
  original: VirtualFile,
  fault: Fault | undefined,
  response: ServerResponse,
  linked: Readonly<Record<string, string>> = {},
): void {
  const file = fault?.file ?? original;
  const [, first, last] = /^bytes=([0-9]+)-([0-9]*)$/.exec(entry.range ?? '') ?? [];
  const isRange = first !== undefined && fault?.range !== 'ignored';
  const from = isRange ? Number(first) : 0;
  const end = isRange && last !== '' ? Number(last) + 1 : file.sizeBytes;
  if (from >= file.sizeBytes && isRange) return void response.writeHead(416, { 'content-range': `bytes */${file.sizeBytes}` }).end();
  const shown = fault?.range === 'wrong-header' ? from + 1 : from;
  response.writeHead(isRange ? 206 : 200, {
    ...linked,
    'accept-ranges': 'bytes',
    etag: `"${fault?.etag ?? file.sha256.slice(0, 32)}"`,
    'content-length': fault?.sizeBytes ?? end - from,
    ...(isRange ? { 'content-range': `bytes ${shown}-${end - 1}/${fault?.sizeBytes ?? file.sizeBytes}` } : {}),
    ...(fault?.encoding === undefined ? {} : { 'content-encoding': fault.encoding }),
  });
  const start = fault?.range === 'wrong-content' ? 0 : from;
  void sendBytes({ hub, entry, response, cutAfter: fault?.silent === true ? 0 : fault?.cutAfter, silent: fault?.silent }, (at, length) =>
    file.read(start + at, Math.min(length, end - from - at)),
  );
}

interface Sending {
  readonly hub: FakeHub;
  readonly entry: LoggedRequest;
  readonly response: ServerResponse;
  readonly cutAfter: number | undefined;
  readonly silent: true | undefined;
}

/** Counts what the operating system has taken, not what still waits in this process. */
async function sendBytes({ hub, entry, response, cutAfter, silent }: Sending, read: (at: number, length: number) => Buffer): Promise<void> {
  let at = 0;
  const began = performance.now();
  for (;;) {
    const chunk = read(at, Math.min(CHUNK, (cutAfter ?? Infinity) - at));
    if (chunk.length === 0 || response.destroyed) break;
    at += chunk.length;
    await new Promise<void>((resolve) => {
      response.once('close', resolve);
      response.write(chunk, () => {
        entry.sentBytes += chunk.length;
        response.off('close', resolve);
        resolve();
      });
    });
    const due = hub.bytesPerSecond === undefined ? 0 : began + (1000 * at) / hub.bytesPerSecond - performance.now();
    if (due > 1) await new Promise((resolve) => setTimeout(resolve, due));
  }
  if (silent) return;
  if (cutAfter === undefined) response.end();
  // Gives the client the time to read what was sent before the connection breaks.
  else setTimeout(() => response.destroy(), 20);
}

function sendJson(response: ServerResponse, body: unknown, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

function refuse(response: ServerResponse, status: number, code: string, message: string): void {
  response.writeHead(status, { 'x-error-code': code, 'x-error-message': message }).end(JSON.stringify({ error: message }));
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise<void>((resolve) => server.close(() => resolve()));
}
