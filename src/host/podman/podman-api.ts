/** Podman's REST API over its unix socket: one exchange, or one stream. Knows HTTP and podman's error shape, nothing of workloads. */
import { Pool } from 'undici';
import { z } from 'zod';
import { fail, ok } from '../../schema/failure.ts';
import type { Result } from '../../schema/failure.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';

export interface PodmanAnswer {
  readonly status: number;
  /** Parsed JSON; undefined where there is none. */
  readonly body: unknown;
  /** Podman's words, with a status of 400 and above. */
  readonly error: string;
}

export interface PodmanApi {
  readonly socketPath: string;
  /** A failure means that no answer came; a refusal is an answer. */
  call(method: 'GET' | 'POST' | 'DELETE', path: string, options: CallOptions): Promise<Result<PodmanAnswer>>;
  /** The body as it comes; leaving the loop closes the connection. */
  open(method: 'GET' | 'POST', path: string, signal: AbortSignal): Promise<Result<AsyncIterable<Buffer>>>;
}

export interface CallOptions {
  readonly signal: AbortSignal;
  readonly body?: unknown;
  readonly timeoutMs?: number;
}

/** Both versions that were tried (4.3 and 5.8) answer to any version prefix; without one they do not. */
export const LIBPOD = '/v4.0.0/libpod';
export const COMPAT = '/v1.41';

const CALL_TIMEOUT_MS = 30_000;
/** The largest answer, of a long container list, is some hundred KB; more is not podman. */
const ANSWER_LIMIT_BYTES = 16 * 1024 * 1024;

export function createPodmanApi(socketPath: string): PodmanApi {
  // Calls may wait long (a stop waits for the container) and streams stay open: time limits are the calls' own.
  const pool = new Pool('http://podman', { socketPath, headersTimeout: 0, bodyTimeout: 0, connectTimeout: 5000, keepAliveTimeout: 10_000 });
  return {
    socketPath,
    async call(method, path, { signal, body, timeoutMs = CALL_TIMEOUT_MS }) {
      try {
        const answer = await pool.request({
          method,
          path,
          signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
          ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
        });
        return ok(read(answer.statusCode, await textOf(answer.body)));
      } catch (error) {
        return noAnswer(socketPath, error, signal);
      }
    },
    async open(method, path, signal) {
      try {
        const answer = await pool.request({ method, path, signal });
        if (answer.statusCode < 300) return ok(answer.body);
        const { error } = read(answer.statusCode, await textOf(answer.body));
        return fail('retry', 'RuntimeRefused', `Podman refused "${path.split('?')[0] ?? path}": ${error}`);
      } catch (error) {
        return noAnswer(socketPath, error, signal);
      }
    },
  };
}

/** True when something at this path answers as podman does; never throws. */
export async function podmanAnswers(socketPath: string, signal?: AbortSignal): Promise<boolean> {
  const pool = new Pool('http://podman', { socketPath, connectTimeout: 2000 });
  const limit = AbortSignal.timeout(2000);
  try {
    const answer = await pool.request({
      method: 'GET',
      path: '/_ping',
      signal: signal === undefined ? limit : AbortSignal.any([signal, limit]),
    });
    await answer.body.dump();
    return answer.statusCode === 200 && answer.headers['libpod-api-version'] !== undefined;
  } catch {
    return false;
  } finally {
    await pool.destroy().catch(() => undefined);
  }
}

/** One JSON document a line, as the event and pull streams have it. A line over the limit, or one that is not JSON, is skipped. */
export async function* jsonLines(chunks: AsyncIterable<Buffer>): AsyncIterable<unknown> {
  let pending = '';
  const decoder = new TextDecoder();
  for await (const chunk of chunks) {
    pending += decoder.decode(chunk, { stream: true });
    const lines = pending.split('\n');
    pending = lines.pop() ?? '';
    if (pending.length > 1024 * 1024) pending = '';
    for (const line of lines) {
      const parsed = parse(line);
      if (parsed !== undefined) yield parsed;
    }
  }
  const last = parse(pending);
  if (last !== undefined) yield last;
}

async function textOf(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > ANSWER_LIMIT_BYTES) throw new Error(`The answer is larger than ${ANSWER_LIMIT_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

const ErrorBody = z.object({ message: z.string(), cause: z.string().optional() });

function read(status: number, text: string): PodmanAnswer {
  const body = parse(text);
  if (status < 400) return { status, body, error: '' };
  const parsed = ErrorBody.safeParse(body);
  return { status, body, error: parsed.success ? parsed.data.message : `status ${status}: ${text.slice(0, 300)}` };
}

function parse(text: string): unknown {
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function noAnswer(socketPath: string, error: unknown, signal: AbortSignal): Result<never> {
  if (signal.aborted) return fail('retry', 'Aborted', 'The action was given up');
  const code = codeOf(error);
  if (code === 'ENOENT' || code === 'ECONNREFUSED') {
    return fail(
      'retry',
      'RuntimeUnreachable',
      `Start podman's API, "systemctl enable --now podman.socket": nothing answers at "${socketPath}"`,
    );
  }
  if (code === 'EACCES') {
    return fail('retry', 'RuntimeUnreachable', `Allow this user to open podman's socket "${socketPath}": permission was denied`);
  }
  return fail('retry', 'RuntimeUnreachable', `Podman at "${socketPath}" broke off: ${messageOf(error)}`);
}
