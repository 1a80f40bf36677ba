/** A small client of the management API. Every failure is a `CliFailure` that says what to do. */
import { parseJson } from '../../platform/decide/parse-json.ts';
import { PROGRAM_HEADER } from '../../gateway/upstream/decide/request-head.ts';
import { CliFailure } from '../output/exit-codes.ts';
import { hasShape, type Shape } from './answer-shape.ts';
import { ErrorAnswer } from './api-answers.ts';
import type { ServiceRequest, ServiceResponse, Transport } from './transport.ts';

export interface RequestOptions extends Pick<ServiceRequest, 'headers'> {
  readonly body?: unknown;
}

export interface Client extends Pick<Transport, 'pollMs' | 'namespace'> {
  /** Sends a request and returns its parsed answer. */
  request<T>(method: string, path: string, shape: Shape<T>, options?: RequestOptions): Promise<T>;
  /** Reads an object. Undefined if the slot does not exist. */
  find<T>(path: string, shape: Shape<T>): Promise<T | undefined>;
  /** Reads a body as it arrives, however long the service is silent in between. */
  stream(path: string): Promise<ServiceResponse>;
}

/** The service then accepts any name in `Host`: that of an API server whose proxy passes it on, for example. */
const PROGRAM = { [PROGRAM_HEADER]: 'svcctl' } as const;

export function createClient(transport: Transport): Client {
  const { pollMs, namespace } = transport;

  async function exchange(method: string, path: string, { body, headers }: RequestOptions = {}): Promise<ServiceResponse> {
    const content = body === undefined ? undefined : { body: JSON.stringify(body) };
    const type = body === undefined ? undefined : { 'content-type': 'application/json' };
    return checkStatus(await transport.send({ method, path, headers: { ...PROGRAM, ...type, ...headers }, ...content }), transport);
  }

  return {
    pollMs,
    ...(namespace === undefined ? {} : { namespace }),
    request: async (method, path, shape, options) => parseAnswer(await exchange(method, path, options), shape, transport),
    async find(path, shape) {
      try {
        return await parseAnswer(await exchange('GET', path), shape, transport);
      } catch (error) {
        if (error instanceof CliFailure && error.code === 'slot.not_found') return undefined;
        throw error;
      }
    },
    stream: async (path) => checkStatus(await transport.send({ method: 'GET', path, headers: PROGRAM, stream: true }), transport),
  };
}

/** Returns a successful response. Throws the error of any other one. */
async function checkStatus(response: ServiceResponse, { service, hint }: Transport): Promise<ServiceResponse> {
  const { status } = response;
  if (status >= 200 && status < 300) return response;
  const answer = parseJson(await response.text());
  if (!hasShape(ErrorAnswer, answer)) throw new CliFailure(`The service at ${service} answered with status ${status}`, { hint });
  const { message, code } = answer.error;
  const requestId = status >= 500 ? response.header('x-request-id') : undefined;
  const details = [code ?? String(status), ...(requestId === undefined ? [] : [`request ${requestId}`])];
  throw new CliFailure(`${message} (${details.join(', ')})`, { hint: hintFor(code), code: code ?? undefined });
}

async function parseAnswer<T>(response: ServiceResponse, shape: Shape<T>, { service, hint }: Transport): Promise<T> {
  const answer = parseJson(await response.text());
  if (hasShape(shape, answer)) return answer;
  const problem = answer === undefined ? 'it is not JSON' : shape.problem(answer);
  throw new CliFailure(`Could not read the answer from ${service}: ${problem}`, { hint });
}

function hintFor(code: string | null | undefined): string | undefined {
  switch (code) {
    case 'auth.required':
      return 'Put a token into SVCCTL_TOKEN, or into a file that --token-file names';
    case 'auth.invalid':
      return 'The token was revoked or belongs to another service; use another one';
    case 'auth.scope':
      return 'Use a token with scope "admin"';
    case 'request.cross_site':
      return 'Check that no proxy on the way adds the headers of a web page, such as "Origin"';
    case 'slot.not_found':
      return 'List the slots with "svcctl get slots"';
    case 'slot.conflict':
      return 'The slot was changed by someone else; check it with "svcctl diff" and try again';
    case 'server.internal':
      return 'The log of the service has details under this request id';
    default:
      return undefined;
  }
}
