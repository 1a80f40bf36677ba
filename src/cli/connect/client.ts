/** Connects to the service that the options name. Every failure is a `CliFailure` with a hint. */
import { PROGRAM_HEADER } from '../../gateway/upstream/decide/request-head.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { modelIdProblem, profileNameProblem, slotNameProblem } from '../../schema/words/name-rules.ts';
import type { Environment } from '../installation.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';
import { answerProblem, isAnswer } from './answer-shape.ts';
import type { Answer, AnswerName } from './api-answers.ts';
import type { ClusterTransportOptions } from './cluster-transport.ts';
import { findLocalSocket, givenToken, readToken, serviceUrl, targetsCluster, type ServiceOptions } from './service-options.ts';
import { sendHttp, type HttpTarget, type ServiceRequest, type ServiceResponse, type Transport } from './transport.ts';

export interface RequestOptions extends Pick<ServiceRequest, 'headers' | 'inference'> {
  readonly body?: unknown;
}

export interface Client extends Pick<Transport, 'pollMs' | 'namespace'> {
  /** Sends a request and returns the parsed answer. */
  request<N extends AnswerName>(method: string, path: string, answer: N, options?: RequestOptions): Promise<Answer<N>>;
  /** Reads an object. Undefined if the slot does not exist. */
  find<N extends AnswerName>(path: string, answer: N): Promise<Answer<N> | undefined>;
  /** Reads a body as it arrives, with silences of any length. */
  stream(path: string): Promise<ServiceResponse>;
  /** Sends an inference request. Any status is a response. */
  infer(path: string, type: string, body: Buffer): Promise<ServiceResponse>;
}

/** The service then accepts any name in `Host`, such as the name of an API server whose proxy forwards the request. */
const PROGRAM = { [PROGRAM_HEADER]: 'svcctl' } as const;
/** The service answers from memory. */
const POLL_MS = 150;

/** `waiting` is used for a service in a cluster only. */
export async function connect(
  options: ServiceOptions,
  env: Environment,
  waiting: Omit<ClusterTransportOptions, 'cluster' | 'token'>,
): Promise<Client> {
  if (targetsCluster(options, env)) {
    const { createClusterTransport, openCluster } = await import('./cluster-transport.ts');
    const token = await givenToken(options, env);
    const cluster = await openCluster(options, env);
    return createClient(createClusterTransport({ cluster, ...waiting, ...(token === undefined ? {} : { token }) }));
  }
  const token = await readToken(options, env);
  const socketPath = token === undefined ? await findLocalSocket(options, env) : undefined;
  // Only root and the user of the service can open the socket of the service of this host.
  const server = socketPath === undefined ? await serviceUrl(options, env) : 'http://localhost';
  return createClient(directTransport({ server, socketPath }, token));
}

function directTransport({ server, socketPath }: Pick<HttpTarget, 'server' | 'socketPath'>, token: string | undefined): Transport {
  const place = `"${socketPath ?? server}"`;
  const credentials = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const start =
    socketPath === undefined ? 'Start it with "svcctl serve", or set its URL' : 'Start the service, or set the URL of another one';
  const failure: HttpTarget['failure'] = (reason, cause) =>
    new CliFailure(`Could not reach the service at ${place}: ${reason}`, { cause, hint: `${start} with --server or SVCCTL_SERVER` });
  const [setting, where] = socketPath === undefined ? ['--server', 'address'] : ['SVC_STATE_DIR', 'socket'];
  return {
    service: place,
    hint: `Check ${setting}: another program may be listening on this ${where}`,
    pollMs: POLL_MS,
    send: async (request) => sendHttp({ server, socketPath, failure }, { ...request, headers: { ...credentials, ...request.headers } }),
  };
}

export function createClient(transport: Transport): Client {
  const { pollMs, namespace } = transport;

  async function exchange(method: string, path: string, { body, headers, inference }: RequestOptions = {}): Promise<ServiceResponse> {
    const content = body === undefined ? undefined : { body: JSON.stringify(body) };
    const type = body === undefined ? undefined : { 'content-type': 'application/json' };
    const late = inference === undefined ? {} : { inference };
    return checkStatus(
      await transport.send({ method, path, headers: { ...PROGRAM, ...type, ...headers }, ...content, ...late }),
      transport,
    );
  }

  return {
    pollMs,
    ...(namespace === undefined ? {} : { namespace }),
    request: async (method, path, answer, options) => parseAnswer(await exchange(method, path, options), answer, transport),
    async find(path, answer) {
      try {
        return await parseAnswer(await exchange('GET', path), answer, transport);
      } catch (error) {
        if (error instanceof CliFailure && error.code === 'slot.not_found') return undefined;
        throw error;
      }
    },
    stream: async (path) => checkStatus(await transport.send({ method: 'GET', path, headers: PROGRAM, stream: true }), transport),
    infer: async (path, type, body) =>
      await transport.send({ method: 'POST', path, headers: { ...PROGRAM, 'content-type': type }, body, stream: true, inference: true }),
  };
}

/** Returns a successful response. Throws the error of any other response. */
async function checkStatus(response: ServiceResponse, { service, hint }: Transport): Promise<ServiceResponse> {
  const { status } = response;
  if (status >= 200 && status < 300) return response;
  const answer = parseJson(await response.text());
  if (!isAnswer('error', answer)) throw new CliFailure(`The service at ${service} answered with status ${status}`, { hint });
  const { message, code } = answer.error;
  const requestId = status >= 500 ? response.header('x-request-id') : undefined;
  const details = [code ?? String(status), ...(requestId === undefined ? [] : [`request ${requestId}`])];
  throw new CliFailure(`${message} (${details.join(', ')})`, { hint: HINTS[code ?? ''], code: code ?? undefined });
}

async function parseAnswer<N extends AnswerName>(response: ServiceResponse, name: N, { service, hint }: Transport): Promise<Answer<N>> {
  const answer = parseJson(await response.text());
  if (isAnswer(name, answer)) return answer;
  const problem = answer === undefined ? 'it is not JSON' : answerProblem(name, answer);
  throw new CliFailure(`Could not read the answer from ${service}: ${problem}`, { hint });
}

/** Hints by error code. */
const HINTS: Readonly<Record<string, string>> = {
  'auth.required': 'Set SVCCTL_TOKEN to an API token, or name a file with one in --token-file',
  'auth.invalid': 'The token was revoked or belongs to another service; use another one',
  'auth.expired': 'Use another token; an administrator creates one with "svcctl token create"',
  'auth.scope': 'Use a token with scope "admin"',
  'request.cross_site': 'Check that no proxy adds headers of a web page, such as "Origin"',
  'slot.not_found': 'List the slots with "svcctl get slots"',
  'model.not_found': 'List the names with "svcctl get slots" and "svcctl get models"',
  'slot.conflict': 'Someone else changed the slot; check it with "svcctl diff" and try again',
  'server.internal': 'Search the log of the service for the request id',
};

/** Returns the path of a slot in the API. Throws a `CliFailure` for an invalid name, as all functions below. */
export const slotPath = (name: string): string => `/api/slots/${checked(name, 'slot name', slotNameProblem)}`;

export const profilePath = (name: string): string => `/api/profiles/${checked(name, 'profile name', profileNameProblem)}`;

export const checkedModelId = (id: string): string => checked(id, 'model id', modelIdProblem);

function checked(name: string, what: string, problemOf: (name: string) => string | undefined): string {
  const problem = problemOf(name);
  if (problem !== undefined) throw usageFailure(`Invalid ${what} "${name}"`, problem);
  return name;
}
