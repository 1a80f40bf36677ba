/** Parses the method and URL of a request to the fake API server. Pure. */
import type { Verb } from './fake-kube-faults.ts';
import { refuse, type FakeResource, type Outcome, type Refusal } from './fake-kube-types.ts';

export interface Target {
  readonly resource: FakeResource;
  /** Undefined: all namespaces; empty for cluster-wide resources. */
  readonly namespace: string | undefined;
  readonly name: string;
  readonly subresource: string;
}

export interface Parsed {
  readonly verb: Verb;
  readonly path: readonly string[];
  readonly query: URLSearchParams;
  readonly target: Target | undefined;
  /** From the URL, even if the resource is not served. */
  readonly named: { readonly resource: string; readonly namespace: string; readonly name: string; readonly subresource: string };
}

const VERBS: Readonly<Record<string, Verb>> = { POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' };

export function parseRequest(method: string, url: string, served: readonly FakeResource[]): Parsed {
  const at = new URL(url, 'http://fake');
  const path = at.pathname
    .split('/')
    .filter((part) => part !== '')
    .map(decodeURIComponent);
  const isCore = path[0] === 'api';
  const group = isCore ? '' : (path[1] ?? '');
  const rest = path.slice(isCore ? 2 : 3);
  const isIn = rest[0] === 'namespaces' && rest.length > 2;
  const [plural = '', name = '', subresource = ''] = isIn ? rest.slice(2) : rest;
  const namespace = isIn ? (rest[1] ?? '') : undefined;
  const resource = served.find((each) => each.group === group && each.plural === plural && each.version === path[isCore ? 1 : 2]);
  const reads: Verb =
    name !== '' ? 'get' : at.searchParams.get('watch') === 'true' || at.searchParams.get('watch') === '1' ? 'watch' : 'list';
  return {
    verb: plural === '' ? 'other' : (VERBS[method] ?? reads),
    path,
    query: at.searchParams,
    target: resource === undefined ? undefined : { resource, namespace: resource.namespaced ? namespace : '', name, subresource },
    named: { resource: plural, namespace: namespace ?? '', name, subresource },
  };
}

/** Discovery documents: versions, groups and the resources of a group. */
export function discovery(path: readonly string[], served: readonly FakeResource[]): Outcome<unknown> {
  const [root, first, second] = path;
  if (root === 'version') return { done: true, value: { major: '1', minor: '33', gitVersion: 'v1.33.0' } };
  if (root === 'readyz' || root === 'livez' || root === 'healthz') return { done: true, value: 'ok' };
  if (root === 'api' && first === undefined) return { done: true, value: { kind: 'APIVersions', versions: ['v1'] } };
  const group = root === 'api' ? '' : (first ?? '');
  const version = root === 'api' ? first : second;
  const resources = served.filter((each) => each.group === group && each.version === version);
  if ((root !== 'api' && root !== 'apis') || resources.length === 0 || path.length > 3) return noSuchPage();
  return {
    done: true,
    value: {
      kind: 'APIResourceList',
      apiVersion: 'v1',
      groupVersion: group === '' ? version : `${group}/${version ?? ''}`,
      resources: resources.flatMap(({ plural, kind, namespaced, hasStatus }) => [
        {
          name: plural,
          singularName: kind.toLowerCase(),
          namespaced,
          kind,
          verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
        },
        ...(hasStatus ? [{ name: `${plural}/status`, singularName: '', namespaced, kind, verbs: ['get', 'patch', 'update'] }] : []),
      ]),
    },
  };
}

export const noSuchPage = (): Outcome<never> => refuse(404, 'NotFound', 'the server could not find the requested resource');

export const statusBody = ({ code, reason, message }: Refusal, retryAfterSeconds?: number): Readonly<Record<string, unknown>> => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message,
  reason,
  code,
  ...(retryAfterSeconds === undefined ? {} : { details: { retryAfterSeconds } }),
});
