/** Where a resource lies on the API server, and what a request to an address is about. Pure. */
import { fail, ok } from '../../../schema/failure.ts';
import type { Result } from '../../../schema/failure.ts';
import type { ResourceType } from '../ports.ts';

export interface ResourceAddress {
  readonly type: ResourceType;
  /** Ignored for cluster-wide resources. */
  readonly namespace: string;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
  readonly query?: Readonly<Record<string, string | undefined>>;
}

/** Lower-case DNS names with dots, as nearly all objects have them; never a slash, a percent sign or "..". */
const OBJECT_NAME = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;
const LONGEST_NAME = 253;

/** Why this cannot be the name of an object; undefined when it can. */
export function badName(name: string): string | undefined {
  if (name.length <= LONGEST_NAME && OBJECT_NAME.test(name)) return undefined;
  return `Use lower-case letters, digits, "-" and "." for the name of an object: "${name.slice(0, 80)}"`;
}

/** `deployments.apps`, as RBAC and the server's messages have it; of the core group just `pods`. */
export const resourceName = (type: ResourceType): string => (type.group === '' ? type.plural : `${type.plural}.${type.group}`);

export const apiVersionOf = (type: ResourceType): string => (type.group === '' ? type.version : `${type.group}/${type.version}`);

/** The address of a group's own list of resources. */
export const groupPath = (type: ResourceType): string =>
  type.group === '' ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`;

/** Path and query from the server's root on. Fails with `Invalid` for a name that cannot be one. */
export function resourcePath({ type, namespace, name, subresource, query = {} }: ResourceAddress): Result<string> {
  const problem = name === undefined ? undefined : badName(name);
  if (problem !== undefined) return fail('stalled', 'Invalid', problem);
  const parts = [groupPath(type)];
  if (type.namespaced) parts.push('namespaces', encodeURIComponent(namespace));
  parts.push(type.plural);
  if (name !== undefined) parts.push(encodeURIComponent(name));
  if (subresource !== undefined) parts.push(subresource);
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value !== undefined && value !== '') search.set(key, value);
  return ok(search.size === 0 ? parts.join('/') : `${parts.join('/')}?${search.toString()}`);
}

/** Verb and resource of a path that is read as a stream: `/api/v1/namespaces/a/pods?watch=true` is `watch` of `pods`. */
export function describePath(path: string): { readonly verb: string; readonly resource: string } {
  const [address = '', search = ''] = path.split('?', 2);
  const parts = address.split('/').filter((part) => part !== '');
  const isCore = parts[0] === 'api';
  const rest = parts.slice(isCore ? 2 : 3);
  const [plural = '', , ...subresource] = rest[0] === 'namespaces' && rest.length > 2 ? rest.slice(2) : rest;
  const group = isCore ? '' : (parts[1] ?? '');
  const resource = [group === '' ? plural : `${plural}.${group}`, ...subresource].join('/');
  const isWatch = ['true', '1'].includes(new URLSearchParams(search).get('watch') ?? '');
  return { verb: isWatch ? 'watch' : 'get', resource };
}
