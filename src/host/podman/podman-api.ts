/** Podman's REST API over its unix socket: requests, streams and errors. Knows nothing about workloads. */
import { request, type IncomingMessage } from 'node:http';
import { z } from 'zod';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import { splitLines, readBody } from '../../platform/read-body.ts';

export interface PodmanAnswer {
  readonly status: number;
  /** Parsed JSON; undefined if the body is not JSON. */
  readonly body: unknown;
  /** Podman's message if the status is 400 or higher, otherwise empty. */
  readonly error: string;
}

export type PodmanApi = ReturnType<typeof createPodmanApi>;

export interface CallOptions {
  readonly signal: AbortSignal;
  readonly body?: unknown;
  readonly timeoutMs?: number;
}

/** Podman 4.3 and 5.8 require some version prefix, but accept any. */
export const LIBPOD = '/v4.0.0/libpod';
export const COMPAT = '/v1.41';

const CALL_TIMEOUT_MS = 30_000;
const PING_TIMEOUT_MS = 2000;
/** The id of a container or an image in a response. */
export const Created = z.object({ Id: z.string().min(1) });
/** Large images take long on slow disks. */
export const CREATE_TIMEOUT_MS = 120_000;
/** Podman's own time to kill and clean up, beyond the grace period. */
export const REMOVE_TIMEOUT_MS = 60_000;
/** The largest response, a long container list, has some hundred KB. */
const ANSWER_LIMIT_BYTES = 16 * 1024 * 1024;
/** Events and progress have a few KB. */
const LONGEST_JSON_LINE = 1024 * 1024;

type Method = 'GET' | 'POST' | 'DELETE';

export function createPodmanApi(socketPath: string) {
  return {
    socketPath,
    /** Fails if there is no response; an error status is a response. */
    async call(method: Method, path: string, { signal, body, timeoutMs = CALL_TIMEOUT_MS }: CallOptions): Promise<Result<PodmanAnswer>> {
      const limit = AbortSignal.timeout(timeoutMs);
      try {
        const answer = await ask(socketPath, { method, path, signal: AbortSignal.any([signal, limit]), body });
        return ok(parseAnswer(answer, await readBody(answer, ANSWER_LIMIT_BYTES)));
      } catch (error) {
        if (limit.aborted && !signal.aborted)
          return fail('retry', 'RuntimeUnreachable', `Podman's API at "${socketPath}" did not respond within ${timeoutMs / 1000} s`);
        return noAnswer(socketPath, error, signal);
      }
    },
    /** Returns the body as a stream. Leaving its loop closes the connection. */
    async open(method: 'GET' | 'POST', path: string, signal: AbortSignal): Promise<Result<AsyncIterable<Buffer>>> {
      try {
        const answer = await ask(socketPath, { method, path, signal });
        if (answer.statusCode !== undefined && answer.statusCode < 300) return ok(answer);
        const { error } = parseAnswer(answer, await readBody(answer, ANSWER_LIMIT_BYTES));
        return fail('retry', 'RuntimeRefused', `Podman refused "${path.split('?')[0] ?? path}": ${error}`);
      } catch (error) {
        return noAnswer(socketPath, error, signal);
      }
    },
  };
}

interface Question {
  readonly method: Method;
  readonly path: string;
  readonly signal: AbortSignal;
  readonly body?: unknown;
}

/**
 * Resolves with the head of the answer; reading its body throws if the connection breaks. Each request has a connection
 * of its own: that of a socket costs little, and none is found closed.
 */
async function ask(socketPath: string, { method, path, signal, body }: Question): Promise<IncomingMessage> {
  signal.throwIfAborted();
  const text = body === undefined ? '' : JSON.stringify(body);
  const headers = text === '' ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
  return await new Promise((resolve, reject) => {
    const asked = request({ socketPath, agent: false, host: 'podman', method, path, headers, signal });
    asked.on('response', resolve);
    asked.on('error', reject);
    asked.end(text);
  });
}

/** Whether podman responds at this path. Never throws. */
export async function podmanAnswers(socketPath: string, signal?: AbortSignal): Promise<boolean> {
  const limit = AbortSignal.timeout(PING_TIMEOUT_MS);
  const limited = signal === undefined ? limit : AbortSignal.any([signal, limit]);
  try {
    const answer = await ask(socketPath, { method: 'GET', path: '/_ping', signal: limited });
    answer.destroy();
    return answer.statusCode === 200 && answer.headers['libpod-api-version'] !== undefined;
  } catch {
    return false;
  }
}

const Info = z.object({ host: z.object({ security: z.object({ rootless: z.boolean() }) }) });

/** Whether podman runs without root: its containers then have the rights of its user. */
export async function readRootless(api: PodmanApi, signal: AbortSignal): Promise<Result<boolean>> {
  const answer = await api.call('GET', `${LIBPOD}/info`, { signal });
  if (!answer.ok) return answer;
  const parsed = Info.safeParse(answer.value.body);
  if (parsed.success) return ok(parsed.data.host.security.rootless);
  return fail('retry', 'RuntimeUnreachable', `Podman at "${api.socketPath}" does not report whether it is rootless`);
}

/** Yields one JSON document per line of an event or pull stream. Skips lines that are too long or not JSON. */
export async function* jsonLines(chunks: AsyncIterable<Buffer>): AsyncIterable<unknown> {
  for await (const line of splitLines(chunks, LONGEST_JSON_LINE)) {
    const document = parseJson(line);
    if (document !== undefined) yield document;
  }
}

const ErrorBody = z.object({ message: z.string(), cause: z.string().optional() });

function parseAnswer({ statusCode: status = 500 }: IncomingMessage, text: string): PodmanAnswer {
  const body = parseJson(text);
  if (status < 400) return { status, body, error: '' };
  const parsed = ErrorBody.safeParse(body);
  return { status, body, error: parsed.success ? parsed.data.message : `status ${status}: ${text.slice(0, 300)}` };
}

function noAnswer(socketPath: string, error: unknown, signal: AbortSignal): Result<never> {
  if (signal.aborted) return fail('retry', 'Aborted', 'The request to podman was cancelled');
  const code = codeOf(error);
  if (code === 'ENOENT' || code === 'ECONNREFUSED') {
    const problem = `Podman's API does not respond at "${socketPath}"`;
    return fail('retry', 'RuntimeUnreachable', `${problem}; start it with "systemctl enable --now podman.socket"`);
  }
  if (code === 'EACCES') {
    return fail('retry', 'RuntimeUnreachable', `Permission to open podman's socket "${socketPath}" was denied; allow this user to open it`);
  }
  return fail('retry', 'RuntimeUnreachable', `The connection to podman at "${socketPath}" failed: ${messageOf(error)}`);
}

/**
 * Returns the configured socket, or the first usual one that responds. A configured one is not checked, so that a wrong
 * one is reported.
 */
export async function findPodmanSocket(
  env: Readonly<Record<string, string | undefined>>,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const configured = env['SVC_PODMAN_SOCKET'] ?? env['CONTAINER_HOST'];
  const path = configured === undefined || configured === '' ? undefined : unixPath(configured);
  if (path !== undefined) return path;
  for (const candidate of usualSockets(env)) {
    if (await podmanAnswers(candidate, signal)) return candidate;
  }
  return undefined;
}

/**
 * Accepts `unix:///path` or a path; undefined for remote forms (`ssh://`, `tcp://`), whose bind mounts are on another
 * machine.
 */
function unixPath(text: string): string | undefined {
  const path = text.replace(/^unix:(\/\/)?/, '');
  return path.startsWith('/') ? path : undefined;
}

function usualSockets(env: Readonly<Record<string, string | undefined>>): string[] {
  const uid = process.getuid?.();
  const runtimeDir = env['XDG_RUNTIME_DIR'];
  const candidates = [
    ...(runtimeDir?.startsWith('/') === true ? [`${runtimeDir}/podman/podman.sock`] : []),
    ...(uid === undefined ? [] : [`/run/user/${uid}/podman/podman.sock`]),
    '/run/podman/podman.sock',
  ];
  return [...new Set(candidates)];
}
