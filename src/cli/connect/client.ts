/** A small client of the management API. What goes wrong becomes a `CliFailure` that says what to do. */
import type { z } from 'zod';
import { ErrorShape } from './api-shapes.ts';
import { CliFailure } from '../output/exit-codes.ts';
import type { Answered, Transport } from './transport.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';

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
  /** How often a waiting verb may ask. */
  readonly pollMs: number;
  /** Of a service in a cluster. */
  readonly namespace: string | undefined;
  /** An answer of this shape. */
  request<T>(method: string, path: string, shape: z.ZodType<T>, options?: RequestOptions): Promise<T>;
  /** Undefined where the service answers 404. */
  find<T>(path: string, shape: z.ZodType<T>, options?: RequestOptions): Promise<T | undefined>;
  /** An answer whose content does not matter. */
  send(method: string, path: string, options?: RequestOptions): Promise<void>;
  /** The body as it comes, however long the service is silent in between. */
  stream(path: string, signal?: AbortSignal): Promise<TextStream>;
}

export function createClient(transport: Transport): Client {
  async function answer(method: string, path: string, options: RequestOptions): Promise<Answered> {
    const json = options.body === undefined ? {} : { body: JSON.stringify(options.body) };
    const type = options.body === undefined ? {} : { 'content-type': 'application/json' };
    return transport.send({ method, path, headers: { ...type, ...options.headers }, signal: options.signal, ...json });
  }

  async function good(method: string, path: string, options: RequestOptions): Promise<Answered> {
    const answered = await answer(method, path, options);
    if (!isGood(answered)) throw await refused(answered, transport);
    return answered;
  }

  return {
    pollMs: transport.pollMs,
    namespace: transport.namespace,
    request: async (method, path, shape, options = {}) => read(await good(method, path, options), shape, transport),
    async find(path, shape, options = {}) {
      const answered = await answer('GET', path, options);
      if (isGood(answered)) return read(answered, shape, transport);
      const failure = await refused(answered, transport);
      if (answered.status === 404 && failure.code === 'slot.not_found') return undefined;
      throw failure;
    },
    async send(method, path, options = {}) {
      const answered = await good(method, path, options);
      await answered.text();
    },
    async stream(path, signal) {
      const answered = await transport.send({ method: 'GET', path, signal, stream: true });
      if (!isGood(answered)) throw await refused(answered, transport);
      return { header: (name) => answered.header(name), text: textOf(answered.body) };
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

function isGood({ status }: Answered): boolean {
  return status >= 200 && status < 300;
}

async function read<T>(answered: Answered, shape: z.ZodType<T>, { service, hint }: Transport): Promise<T> {
  const parsed = shape.safeParse(parseJson(await answered.text()));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const where = issue === undefined ? '' : ` ("${issue.path.join('.')}": ${issue.message})`;
  throw new CliFailure(`The answer of ${service} is not one of svc${where}`, { hint });
}

async function refused(answered: Answered, { service, hint }: Transport): Promise<ApiFailure> {
  const parsed = ErrorShape.safeParse(parseJson(await answered.text().catch(() => '')));
  if (!parsed.success) return new ApiFailure(`The service at ${service} answered ${answered.status}`, hint, undefined);
  const { message, code } = parsed.data.error;
  const id = answered.header('x-request-id');
  const facts = [code ?? String(answered.status), answered.status >= 500 && id !== undefined ? `request ${id}` : undefined];
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

async function* textOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const chunk of body) yield decoder.decode(chunk, { stream: true });
}
