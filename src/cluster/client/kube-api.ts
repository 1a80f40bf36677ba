/** Requests to one namespace of an API server: plain JSON, a bounded number at once, refusals as failures. Nothing is tried again here. */
import { fail, ok } from '../../schema/failure.ts';
import type { Result } from '../../schema/failure.ts';
import { findCredentials } from './credentials.ts';
import type { Credentials, CredentialsOptions } from './credentials.ts';
import { isKubeObject } from './decide/kube-object.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { readRefusal } from './decide/read-refusal.ts';
import type { Asked } from './decide/read-refusal.ts';
import { apiVersionOf, badName, describePath, groupPath, resourceName, resourcePath } from './decide/resource-path.ts';
import { createKubeHttp } from './kube-http.ts';
import type { HttpAnswer, HttpRequest, KubeHttp } from './kube-http.ts';
import { readList } from './read-list.ts';
import type { KubeApi, KubeManifest, KubeObject, ResourceType } from './ports.ts';
import { createRequestGate } from './request-gate.ts';
import type { RequestGate } from './request-gate.ts';

export interface KubeApiOptions extends CredentialsOptions {
  /** Rather than the context's or the pod's own. */
  readonly namespace?: string | undefined;
  /** Of this program, for the user agent. */
  readonly version: string;
  /** Requests at once; watches and logs do not count. */
  readonly concurrency?: number;
  readonly timeoutMs?: number;
  /** Called for each request that is sent. `resource` as RBAC names it, `discovery` for the list of a group. */
  readonly onRequest?: (request: { readonly verb: string; readonly resource: string }) => void;
}

const CONCURRENCY = 16;
const TIMEOUT_MS = 30_000;

/** Fails with `NoCluster` when no cluster or context is known; sends nothing. */
export async function createKubeApi(options: KubeApiOptions): Promise<Result<KubeApi>> {
  const found = await findCredentials(options);
  if (!found.ok) return found;
  const namespace = options.namespace ?? found.value.namespace ?? 'default';
  const problem = badName(namespace);
  if (problem !== undefined) return fail('stalled', 'Invalid', problem);
  const credentials = found.value;
  const http = createKubeHttp({ credentials, userAgent: `svc/${options.version}`, timeoutMs: options.timeoutMs ?? TIMEOUT_MS });
  const gate = createRequestGate(options.concurrency ?? CONCURRENCY);
  return ok(createRequests({ credentials, http, gate, namespace, onRequest: options.onRequest ?? (() => undefined) }));
}

interface RequestParts {
  readonly credentials: Credentials;
  readonly http: KubeHttp;
  readonly gate: RequestGate;
  readonly namespace: string;
  readonly onRequest: (request: { readonly verb: string; readonly resource: string }) => void;
}

/** One request about one resource. */
interface Call {
  readonly verb: 'get' | 'list' | 'create' | 'update' | 'patch' | 'delete';
  readonly type: ResourceType;
  readonly name?: string;
  readonly subresource?: string | undefined;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  readonly contentType?: string;
}

const METHODS = { get: 'GET', list: 'GET', create: 'POST', update: 'PUT', patch: 'PATCH', delete: 'DELETE' } as const;

function createRequests({ credentials, http, gate, namespace, onRequest }: RequestParts): KubeApi {
  const { server } = credentials;
  const refused = (asked: Omit<Asked, 'server'>, answer: HttpAnswer): Result<never> => ({
    ok: false,
    failure: readRefusal({ ...asked, server }, { ...answer }, Date.now()),
  });

  /** With credentials read anew when they are not accepted: nothing was carried out then. */
  async function exchange(asked: Omit<Asked, 'server'>, request: HttpRequest, signal: AbortSignal): Promise<Result<string>> {
    if (!(await gate.enter(signal))) return fail('retry', 'Aborted', 'The request was given up');
    try {
      onRequest(asked);
      let answer = await http.exchange(request, signal);
      if (answer.ok && answer.value.status === 401 && credentials.renew()) {
        onRequest(asked);
        answer = await http.exchange(request, signal);
      }
      if (!answer.ok) return answer;
      return answer.value.status < 300 ? ok(answer.value.text) : refused(asked, answer.value);
    } finally {
      gate.leave();
    }
  }

  async function call({ verb, type, name, subresource, query, body, contentType }: Call, signal: AbortSignal): Promise<Result<string>> {
    const path = resourcePath({ type, namespace, name, subresource, query: query ?? {} });
    if (!path.ok) return path;
    const resource = subresource === undefined ? resourceName(type) : `${resourceName(type)}/${subresource}`;
    return await exchange(
      { verb, resource, namespace: type.namespaced ? namespace : '', name: name ?? '' },
      {
        method: METHODS[verb],
        path: path.value,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(contentType === undefined ? {} : { contentType }),
      },
      signal,
    );
  }

  const callForObject = async (asked: Call, signal: AbortSignal): Promise<Result<KubeObject>> => {
    const answer = await call(asked, signal);
    return answer.ok ? readObject(answer.value, asked.type) : answer;
  };

  return {
    namespace,
    server,
    get: async (type, name, signal) => await callForObject({ verb: 'get', type, name }, signal),
    list: async (type, { keep, ...selectors }, signal) =>
      await readList(type, keep, async (page) => await call({ verb: 'list', type, query: { ...selectors, ...page } }, signal)),
    async apply(type, manifest, { fieldManager, subresource, dryRun }, signal) {
      const query = { fieldManager, force: 'true', ...(dryRun === true ? { dryRun: 'All' } : {}) };
      const contentType = 'application/apply-patch+yaml';
      return await callForObject(
        { verb: 'patch', type, name: manifest.metadata.name, subresource, query, body: inside(type, manifest), contentType },
        signal,
      );
    },
    create: async (type, manifest, signal) =>
      badName(manifest.metadata.name) === undefined
        ? await callForObject({ verb: 'create', type, body: inside(type, manifest) }, signal)
        : fail('stalled', 'Invalid', badName(manifest.metadata.name) ?? ''),
    replace: async (type, manifest, signal) =>
      await callForObject({ verb: 'update', type, name: manifest.metadata.name, body: inside(type, manifest) }, signal),
    mergePatch: async (type, name, patch, signal) =>
      await callForObject({ verb: 'patch', type, name, body: patch, contentType: 'application/merge-patch+json' }, signal),
    async remove(type, name, { graceSeconds, propagation = 'Background', uid }, signal) {
      const body = {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        propagationPolicy: propagation,
        ...(graceSeconds === undefined ? {} : { gracePeriodSeconds: graceSeconds }),
        ...(uid === undefined ? {} : { preconditions: { uid } }),
      };
      const answer = await call({ verb: 'delete', type, name, body }, signal);
      if (answer.ok || answer.failure.reason === 'NotFound') return ok(undefined);
      if (answer.failure.reason !== 'Conflict' || uid === undefined) return answer;
      // There may be another object of the name now: then the one that was meant has gone.
      const held = await callForObject({ verb: 'get', type, name }, signal);
      const isGone = held.ok ? held.value.metadata.uid !== uid : held.failure.reason === 'NotFound';
      return isGone ? ok(undefined) : answer;
    },
    async stream(path, signal) {
      if (!path.startsWith('/')) return fail('stalled', 'Invalid', `Begin the path of a stream with "/": "${path.slice(0, 80)}"`);
      const asked = { ...describePath(path), namespace, name: '' };
      onRequest(asked);
      let opened = await http.open(path, signal);
      if (opened.ok && opened.value.kind === 'refused' && opened.value.answer.status === 401 && credentials.renew()) {
        onRequest(asked);
        opened = await http.open(path, signal);
      }
      if (!opened.ok) return opened;
      return opened.value.kind === 'open' ? ok(opened.value.body) : refused(asked, opened.value.answer);
    },
    async serves(type, signal) {
      const asked = { verb: 'get', resource: 'discovery', namespace: '', name: resourceName(type) };
      const answer = await exchange(asked, { method: 'GET', path: groupPath(type) }, signal);
      if (!answer.ok) return answer.failure.reason === 'NotFound' ? ok(false) : answer;
      return ok(namesResource(answer.value, type.plural));
    },
  };

  function inside(type: ResourceType, manifest: KubeManifest): KubeManifest {
    return type.namespaced ? { ...manifest, metadata: { ...manifest.metadata, namespace } } : manifest;
  }
}

function readObject(text: string, type: ResourceType): Result<KubeObject> {
  const parsed = parseJson(text);
  if (isKubeObject(parsed)) return ok(parsed);
  return fail('retry', 'ApiFailed', `The API server's answer is no ${apiVersionOf(type)} ${type.kind}`);
}

function namesResource(text: string, plural: string): boolean {
  const parsed = parseJson(text);
  if (typeof parsed !== 'object' || parsed === null || !('resources' in parsed) || !Array.isArray(parsed.resources)) return false;
  return parsed.resources.some((one: unknown) => typeof one === 'object' && one !== null && 'name' in one && one.name === plural);
}
