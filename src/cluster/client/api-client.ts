/** Requests to one namespace of an API server: plain JSON, a limited number at the same time, error responses as failures. Nothing is retried here. */
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { isTable } from '../../schema/words/key-case.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { findCredentials, type Credentials, type CredentialsOptions } from './credentials.ts';
import { isKubeObject } from './decide/object-fields.ts';
import { parseRefusal, requestCode, type Refusal, type RequestInfo } from './decide/parse-refusal.ts';
import { apiVersionOf, badName, groupPath, resourceName, resourcePath, type ResourceAddress } from './decide/resource-path.ts';
import { createKubeHttp, createRequestGate, type HttpRequest } from './http-client.ts';
import type { KubeObserver } from './client-observer.ts';
import { readList } from './read-list.ts';
import type { KubeApi, KubeManifest, KubeObject, ResourceType } from './ports.ts';

export interface KubeApiOptions extends CredentialsOptions {
  /** Takes precedence over the namespace of the context or of the pod. */
  readonly namespace?: string | undefined;
  /** Version of this program, for the user agent. */
  readonly version: string;
  /** Maximum number of requests at the same time, without watches and logs. */
  readonly concurrency?: number;
  readonly timeoutMs?: number;
  /** Called for each request that was sent, when its answer has been received or it has failed. */
  readonly onRequest?: KubeObserver['requestEnded'];
}

const CONCURRENCY = 16;
const TIMEOUT_MS = 30_000;

/** Fails with `NoCluster` if no cluster or context is configured. Sends no request. */
export async function createKubeApi(options: KubeApiOptions): Promise<Result<KubeApi>> {
  const found = await findCredentials(options);
  if (!found.ok) return found;
  const namespace = options.namespace ?? found.value.namespace ?? 'default';
  const problem = badName(namespace);
  if (problem !== undefined) return fail('stalled', 'Invalid', problem);
  return ok(createRequests(found.value, namespace, options));
}

const METHODS = { get: 'GET', list: 'GET', watch: 'GET', create: 'POST', update: 'PUT', patch: 'PATCH', delete: 'DELETE' } as const;

const ABORTED = fail('retry', 'Aborted', 'The request was aborted');

type Consume<T> = (body: AsyncIterable<Uint8Array>) => Promise<T>;

interface Call extends Omit<ResourceAddress, 'namespace'> {
  readonly verb: keyof typeof METHODS;
  readonly body?: unknown;
  readonly contentType?: string | undefined;
}

function createRequests(credentials: Credentials, namespace: string, options: KubeApiOptions): KubeApi {
  const { version, concurrency = CONCURRENCY, timeoutMs = TIMEOUT_MS, onRequest = () => undefined } = options;
  const { server } = credentials;
  const http = createKubeHttp({ credentials, userAgent: `svc/${version}`, timeoutMs });
  const gate = createRequestGate(concurrency);

  const refused = (info: RequestInfo, answer: Refusal): Result<never> => ({
    ok: false,
    failure: parseRefusal({ ...info, server }, answer, { now: performance.now(), random: Math.random() }),
  });

  const infoOf = ({ verb, type, name = '', subresource }: Call): RequestInfo => ({
    verb,
    resource: subresource === undefined ? resourceName(type) : `${resourceName(type)}/${subresource}`,
    namespace: type.namespaced ? namespace : '',
    name,
  });

  /** Sends a second time with renewed credentials if the server rejects them: the first request was not carried out. */
  async function authorized<T extends Refusal>(info: RequestInfo, send: () => Promise<Result<T>>): Promise<Result<T>> {
    const answer = await reported(info, send);
    if (!answer.ok || answer.value.status !== 401 || !credentials.renew()) return answer;
    return await reported(info, send);
  }

  async function reported<T extends Refusal>({ verb, resource }: RequestInfo, send: () => Promise<Result<T>>): Promise<Result<T>> {
    const sentAt = performance.now();
    const answer = await send();
    onRequest({ verb, resource, code: requestCode(answer), seconds: (performance.now() - sentAt) / 1000 });
    return answer;
  }

  async function exchange(info: RequestInfo, request: HttpRequest, signal: AbortSignal): Promise<Result<string>> {
    const answer = await gate(signal, async () => await authorized(info, async () => await http.exchange(request, signal)));
    if (answer === undefined) return ABORTED;
    if (!answer.ok) return answer;
    return answer.value.status < 300 ? ok(answer.value.text) : refused(info, answer.value);
  }

  async function call(request: Call, signal: AbortSignal): Promise<Result<string>> {
    const { type, name, subresource, query, body, contentType } = request;
    const path = resourcePath({ type, namespace, name, subresource, query });
    if (!path.ok) return path;
    const content = { body: body === undefined ? undefined : JSON.stringify(body), contentType };
    return await exchange(infoOf(request), { method: METHODS[request.verb], path: path.value, ...content }, signal);
  }

  /** One page of a list. */
  async function read<T>(type: ResourceType, query: Call['query'], consume: Consume<T>, signal: AbortSignal): Promise<Result<T>> {
    const path = resourcePath({ type, namespace, query });
    if (!path.ok) return path;
    const info = infoOf({ verb: 'list', type });
    const answer = await gate(signal, async () => await authorized(info, async () => await http.read(path.value, signal, consume)));
    if (answer === undefined) return ABORTED;
    if (!answer.ok) return answer;
    return answer.value.consumed === undefined ? refused(info, answer.value) : ok(answer.value.consumed.value);
  }

  async function callForObject(request: Call, signal: AbortSignal): Promise<Result<KubeObject>> {
    const answer = await call(request, signal);
    return answer.ok ? parseObject(answer.value, request.type) : answer;
  }

  function complete(type: ResourceType, manifest: KubeManifest): KubeManifest {
    const metadata = type.namespaced ? { ...manifest.metadata, namespace } : manifest.metadata;
    return { apiVersion: apiVersionOf(type), kind: type.kind, ...manifest, metadata };
  }

  return {
    namespace,
    server,
    get: async (type, name, signal) => await callForObject({ verb: 'get', type, name }, signal),
    list: async (type, options, signal) =>
      await readList(type, options, async (query, consume) => await read(type, query, consume, signal)),
    async apply(type, manifest, { fieldManager, subresource, dryRun }, signal) {
      const { name } = manifest.metadata;
      const query = { fieldManager, force: 'true', ...(dryRun === true ? { dryRun: 'All' } : {}) };
      const content = { body: complete(type, manifest), contentType: 'application/apply-patch+yaml' };
      return await callForObject({ verb: 'patch', type, name, subresource, query, ...content }, signal);
    },
    async create(type, manifest, signal) {
      const problem = badName(manifest.metadata.name);
      if (problem !== undefined) return fail('stalled', 'Invalid', problem);
      return await callForObject({ verb: 'create', type, body: complete(type, manifest) }, signal);
    },
    replace: async (type, manifest, signal) =>
      await callForObject({ verb: 'update', type, name: manifest.metadata.name, body: complete(type, manifest) }, signal),
    mergePatch: async (type, name, patch, signal) =>
      await callForObject({ verb: 'patch', type, name, body: patch, contentType: 'application/merge-patch+json' }, signal),
    async remove(type, name, { graceSeconds, uid }, signal) {
      const body = {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        propagationPolicy: 'Background',
        ...(graceSeconds === undefined ? {} : { gracePeriodSeconds: graceSeconds }),
        ...(uid === undefined ? {} : { preconditions: { uid } }),
      };
      const answer = await call({ verb: 'delete', type, name, body }, signal);
      if (answer.ok || answer.failure.reason === 'NotFound') return ok(undefined);
      if (answer.failure.reason !== 'Conflict' || uid === undefined) return answer;
      // If another object has the name now, the one to be removed is gone.
      const present = await callForObject({ verb: 'get', type, name }, signal);
      const isGone = present.ok ? present.value.metadata.uid !== uid : present.failure.reason === 'NotFound';
      return isGone ? ok(undefined) : answer;
    },
    async stream(type, request, signal) {
      const path = resourcePath({ type, namespace, ...request });
      if (!path.ok) return path;
      const info = infoOf({ verb: request.query['watch'] === 'true' ? 'watch' : 'get', type, ...request });
      const opened = await authorized(info, async () => await http.open(path.value, signal));
      if (!opened.ok) return opened;
      return opened.value.stream === undefined ? refused(info, opened.value) : ok(opened.value.stream);
    },
    async serves(type, signal) {
      const info = { verb: 'get', resource: 'discovery', namespace: '', name: resourceName(type) };
      const answer = await exchange(info, { method: 'GET', path: groupPath(type) }, signal);
      if (!answer.ok) return answer.failure.reason === 'NotFound' ? ok(false) : answer;
      return ok(listsResource(answer.value, type.plural));
    },
  };
}

function parseObject(text: string, type: ResourceType): Result<KubeObject> {
  const parsed = parseJson(text);
  if (isKubeObject(parsed)) return ok(parsed);
  return fail('retry', 'ApiFailed', `The response of the API server is not a ${apiVersionOf(type)} ${type.kind}`);
}

/** Whether a discovery document lists the resource. */
function listsResource(text: string, plural: string): boolean {
  const parsed = parseJson(text);
  const resources = isTable(parsed) ? parsed['resources'] : undefined;
  return Array.isArray(resources) && resources.some((resource: unknown) => isTable(resource) && resource['name'] === plural);
}
