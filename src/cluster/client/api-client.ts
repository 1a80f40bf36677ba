/** Requests to one namespace: plain JSON, limited concurrency, error responses as failures, no retries. */
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { tablesAt } from '../../schema/pod/kube-fields.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { findCredentials, type CredentialsOptions } from './credentials.ts';
import { isKubeObject } from './decide/object-fields.ts';
import { parseRefusal, requestCode, type RequestInfo } from './decide/parse-refusal.ts';
import { apiVersionOf, badName, groupPath, resourceName, resourcePath, type ResourceAddress } from './decide/resource-path.ts';
import { createKubeHttp, createRequestGate, decompressed, readText, streamOf, type Answer } from './http-client.ts';
import type { KubeObserver } from './client-observer.ts';
import { readList } from './read-list.ts';
import type { Credentials, KubeApi, KubeManifest, KubeObject, ResourceType } from './ports.ts';

export interface KubeApiOptions extends CredentialsOptions {
  /** Takes precedence over the namespace of the context or of the pod. */
  readonly namespace?: string | undefined;
  readonly version: string;
  /** Maximum number of requests in flight, without watches and logs. */
  readonly concurrency?: number;
  readonly timeoutMs?: number;
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
  return problem === undefined ? ok(createRequests(found.value, namespace, options)) : fail('stalled', 'Invalid', problem);
}

const METHODS = { get: 'GET', list: 'GET', watch: 'GET', create: 'POST', update: 'PUT', patch: 'PATCH', delete: 'DELETE' } as const;

const ABORTED = fail('retry', 'Aborted', 'The request was aborted');

interface Call extends Omit<ResourceAddress, 'namespace'> {
  readonly namespace?: string;
  readonly verb: keyof typeof METHODS;
  readonly body?: unknown;
  readonly contentType?: string | undefined;
}

function createRequests(credentials: Credentials, namespace: string, options: KubeApiOptions): KubeApi {
  const { version, concurrency = CONCURRENCY, timeoutMs = TIMEOUT_MS, onRequest = () => undefined } = options;
  const { server } = credentials;
  const { exchange } = createKubeHttp({ credentials, userAgent: `svc/${version}`, timeoutMs });
  const gate = createRequestGate(concurrency);

  const infoOf = ({ verb, type, namespace: other = namespace, name = '', subresource }: Call): RequestInfo => ({
    verb,
    resource: subresource === undefined ? resourceName(type) : `${resourceName(type)}/${subresource}`,
    namespace: type.namespaced ? other : '',
    name,
  });

  async function reported<T>({ verb, resource }: RequestInfo, send: () => Promise<Result<Answer<T>>>): Promise<Result<Answer<T>>> {
    const sentAt = performance.now();
    const answer = await send();
    onRequest({ verb, resource, code: requestCode(answer), seconds: (performance.now() - sentAt) / 1000 });
    return answer;
  }

  /** Sends a second time with renewed credentials if the server rejects them: the first request was not carried out. */
  async function authorized<T>(info: RequestInfo, send: () => Promise<Result<Answer<T>>>): Promise<Result<T>> {
    const first = await reported(info, send);
    const isRejected = first.ok && first.value.status === 401 && credentials.renew();
    const answer = isRejected ? await reported(info, send) : first;
    if (!answer.ok) return answer;
    if (answer.value.received !== undefined) return ok(answer.value.received.value);
    const at = { now: performance.now(), random: Math.random() };
    return { ok: false, failure: parseRefusal({ ...info, server }, answer.value, at) };
  }

  const limited = async <T>(signal: AbortSignal, info: RequestInfo, send: () => Promise<Result<Answer<T>>>): Promise<Result<T>> =>
    (await gate(signal, async () => await authorized(info, send))) ?? ABORTED;

  async function call(request: Call, signal: AbortSignal): Promise<Result<string>> {
    const { body, contentType } = request;
    const path = resourcePath({ namespace, ...request });
    if (!path.ok) return path;
    const content = { body: body === undefined ? undefined : JSON.stringify(body), contentType };
    const sent = { method: METHODS[request.verb], path: path.value, ...content };
    return await limited(signal, infoOf(request), async () => await exchange(sent, signal, readText));
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
      await readList(type, options, async (query, consume) => {
        const path = resourcePath({ type, namespace, query });
        if (!path.ok) return path;
        const sent = { method: 'GET', path: path.value, mayCompress: true } as const;
        const read = async () => await exchange(sent, signal, async ({ response }) => await consume(decompressed(response)));
        return await limited(signal, infoOf({ verb: 'list', type }), read);
      }),
    async apply(type, manifest, { fieldManager, subresource, dryRun, force = true }, signal) {
      const { name } = manifest.metadata;
      const query = { fieldManager, force: String(force), ...(dryRun === true ? { dryRun: 'All' } : {}) };
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
    async mergePatch(type, to, body, signal) {
      const target = typeof to === 'string' ? { name: to } : to;
      return await callForObject({ verb: 'patch', type, ...target, body, contentType: 'application/merge-patch+json' }, signal);
    },
    async remove(type, name, { graceSeconds, uid }, signal) {
      const options = { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background', gracePeriodSeconds: graceSeconds };
      const body = { ...options, ...(uid === undefined ? {} : { preconditions: { uid } }) };
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
      const sent = { method: 'GET', path: path.value } as const;
      return await authorized(info, async () => await exchange(sent, signal, (opened) => streamOf(opened, signal)));
    },
    async serves(type, signal) {
      const info = { verb: 'get', resource: 'discovery', namespace: '', name: resourceName(type) };
      const sent = { method: 'GET', path: groupPath(type) } as const;
      const answer = await limited(signal, info, async () => await exchange(sent, signal, readText));
      if (!answer.ok) return answer.failure.reason === 'NotFound' ? ok(false) : answer;
      return ok(tablesAt(parseJson(answer.value), 'resources').some(({ name }) => name === type.plural));
    },
  };
}

function parseObject(text: string, type: ResourceType): Result<KubeObject> {
  const parsed = parseJson(text);
  if (isKubeObject(parsed)) return ok(parsed);
  return fail('retry', 'ApiFailed', `The response of the API server is not a ${apiVersionOf(type)} ${type.kind}`);
}
