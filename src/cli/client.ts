/** A small client of the management API. What goes wrong becomes a `CliFailure` that says what to do. */
import type { z } from 'zod';
import { ErrorShape } from './api-shapes.ts';
import { CliFailure } from './exit-codes.ts';

export interface RequestOptions {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

export interface TextStream {
  header(name: string): string | undefined;
  readonly text: AsyncIterable<string>;
}

export interface Client {
  readonly server: string;
  /** An answer of this shape. */
  request<T>(method: string, path: string, shape: z.ZodType<T>, options?: RequestOptions): Promise<T>;
  /** Undefined where the service answers 404. */
  find<T>(path: string, shape: z.ZodType<T>, options?: RequestOptions): Promise<T | undefined>;
  /** An answer whose content does not matter. */
  send(method: string, path: string, options?: RequestOptions): Promise<void>;
  /** The body as it comes, however long the service is silent in between. */
  stream(path: string, signal?: AbortSignal): Promise<TextStream>;
}

/** No answer of the management API waits on a load; one that takes longer than this will not come. */
const ANSWER_MS = 30_000;

export function createClient(server: string, token: string | undefined): Client {
  const common = token === undefined ? {} : { authorization: `Bearer ${token}` };

  async function answer(method: string, path: string, options: RequestOptions): Promise<Response> {
    const signals = [options.signal, AbortSignal.timeout(ANSWER_MS)];
    const json = options.body === undefined ? {} : { 'content-type': 'application/json' };
    try {
      return await fetch(`${server}${path}`, {
        method,
        headers: { ...common, ...json, ...options.headers },
        body: options.body === undefined ? null : JSON.stringify(options.body),
        signal: AbortSignal.any(signals.filter((signal) => signal !== undefined)),
        redirect: 'error',
      });
    } catch (cause) {
      throw unreachable(server, cause);
    }
  }

  async function good(method: string, path: string, options: RequestOptions): Promise<Response> {
    const response = await answer(method, path, options);
    if (!response.ok) throw await refused(response, server);
    return response;
  }

  return {
    server,
    request: async (method, path, shape, options = {}) => read(await good(method, path, options), shape, server),
    async find(path, shape, options = {}) {
      const response = await answer('GET', path, options);
      if (response.status === 404) {
        const failure = await refused(response, server);
        if (failure.code === 'slot.not_found') return undefined;
        throw failure;
      }
      if (!response.ok) throw await refused(response, server);
      return read(response, shape, server);
    },
    async send(method, path, options = {}) {
      const response = await good(method, path, options);
      await response.arrayBuffer();
    },
    async stream(path, signal) {
      // `fetch` gives up on a body that is silent for five minutes.
      const { request } = await import('undici');
      const options = { method: 'GET', headers: common, bodyTimeout: 0, headersTimeout: ANSWER_MS, signal: signal ?? null } as const;
      const { statusCode, headers, body } = await request(`${server}${path}`, options).catch((cause: unknown) => {
        throw unreachable(server, cause);
      });
      if (statusCode !== 200) throw await refused(new Response(await body.text(), { status: statusCode }), server);
      return { header: (name) => headers[name]?.toString(), text: textOf(body, server) };
    },
  };
}

class ApiFailure extends CliFailure {
  readonly code: string | undefined;

  constructor(message: string, hint: string | undefined, code: string | undefined) {
    super(message, { hint });
    this.code = code;
  }
}

async function read<T>(response: Response, shape: z.ZodType<T>, server: string): Promise<T> {
  const parsed = shape.safeParse(parseJson(await response.text()));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const where = issue === undefined ? '' : ` ("${issue.path.join('.')}": ${issue.message})`;
  throw new CliFailure(`The answer of "${server}" is not one of svc${where}`, { hint: 'Check --server: something else may listen there' });
}

async function refused(response: Response, server: string): Promise<ApiFailure> {
  const parsed = ErrorShape.safeParse(parseJson(await response.text().catch(() => '')));
  if (!parsed.success) {
    return new ApiFailure(`"${server}" answered ${response.status}`, 'Check --server: something else may listen there', undefined);
  }
  const { message, code } = parsed.data.error;
  const id = response.headers.get('x-request-id');
  const facts = [code ?? String(response.status), response.status >= 500 && id !== null ? `request ${id}` : undefined];
  const known = facts.filter((fact) => fact !== undefined).join(', ');
  return new ApiFailure(`${message} (${known})`, hintOf(code ?? undefined), code ?? undefined);
}

function hintOf(code: string | undefined): string | undefined {
  switch (code) {
    case 'auth.required':
      return 'Put a token into SVCCTL_TOKEN, or into a file named by --token-file';
    case 'auth.invalid':
      return 'The token was revoked or is of another service; create one with "svcctl token create"';
    case 'auth.scope':
      return 'Use a token with scope "admin"';
    case 'slot.not_found':
      return 'List the slots with "svcctl get slots"';
    case 'slot.conflict':
      return 'Somebody else changed the slot; look with "svcctl diff" and try again';
    case 'server.internal':
      return 'The log of the service has the details under this request id';
    default:
      return undefined;
  }
}

function unreachable(server: string, cause: unknown): CliFailure {
  if (cause instanceof Error && cause.name === 'AbortError') return new CliFailure('Interrupted', { cause });
  const why = cause instanceof Error && cause.name === 'TimeoutError' ? 'no answer came in time' : reasonOf(cause);
  return new CliFailure(`Could not reach the service at "${server}": ${why}`, {
    cause,
    hint: 'Start it with "svcctl serve", or name its address with --server or SVCCTL_SERVER',
  });
}

function reasonOf(error: unknown): string {
  const inner: unknown = error instanceof Error ? (error.cause ?? error) : error;
  const code: unknown = typeof inner === 'object' && inner !== null && 'code' in inner ? inner.code : undefined;
  if (code === 'ECONNREFUSED') return 'nothing listens there';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'the host name is not known';
  if (code === 'ECONNRESET' || code === 'UND_ERR_SOCKET') return 'the connection was cut';
  return inner instanceof Error && inner.message !== '' ? inner.message : String(code ?? inner);
}

async function* textOf(body: AsyncIterable<Uint8Array>, server: string): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  try {
    for await (const chunk of body) yield decoder.decode(chunk, { stream: true });
  } catch (cause) {
    throw unreachable(server, cause);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
