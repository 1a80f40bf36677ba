/** Checks whether these credentials have the rights that `svcctl` and `kubectl` need, by asking the API server about each one. */
import { z } from 'zod';
import { SLOT_RESOURCE } from '../../schema/slot/slot-resource.ts';
import type { ClusterAccess } from '../connect/cluster-access.ts';
import { fail, ok, warn, type Check } from './check.ts';
import { query } from './cluster-query.ts';

interface Right {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  /** What is impossible without it. */
  readonly use: 'everything' | 'edits' | 'kubectl';
}

const proxy = (verb: string, use: Right['use']): Right => ({ verb, group: '', resource: 'pods', subresource: 'proxy', use });
const slots = (verb: string): Right => ({ verb, group: SLOT_RESOURCE.group, resource: SLOT_RESOURCE.plural, use: 'kubectl' });

const RIGHTS: readonly Right[] = [
  { verb: 'get', group: 'coordination.k8s.io', resource: 'leases', use: 'everything' },
  proxy('get', 'everything'),
  proxy('create', 'edits'),
  proxy('update', 'edits'),
  proxy('delete', 'edits'),
  ...['get', 'list', 'create', 'patch', 'delete'].map(slots),
];

const Review = z.looseObject({ status: z.looseObject({ allowed: z.boolean() }) });

/** https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access */
export async function checkRights(cluster: ClusterAccess): Promise<Check> {
  const reviews = await Promise.all(RIGHTS.map(async (right) => ({ right, allowed: await isAllowed(cluster, right) })));
  if (reviews.every(({ allowed }) => allowed === undefined)) {
    return warn('rights', 'The API server did not answer', 'Check that "kubectl auth can-i --list" works with this context');
  }
  const denied = reviews.filter(({ allowed }) => allowed === false).map(({ right }) => right);
  const missing = (use: Right['use']): string =>
    denied
      .filter((right) => right.use === use)
      .map(nameOf)
      .join(', ');
  const hint = `Ask for these rights in namespace "${cluster.namespace}"`;
  if (missing('everything') !== '') return fail('rights', `svcctl cannot reach the service: missing ${missing('everything')}`, hint);
  if (missing('edits') !== '') return warn('rights', `svcctl can read but not change slots: missing ${missing('edits')}`, hint);
  if (missing('kubectl') !== '') return warn('rights', `svcctl can do everything, kubectl cannot: missing ${missing('kubectl')}`, hint);
  return ok('rights', 'svcctl and kubectl can read and change slots');
}

function nameOf({ verb, resource, subresource }: Right): string {
  return `"${verb}" "${resource}${subresource === undefined ? '' : `/${subresource}`}"`;
}

/** Undefined if there is no answer. */
async function isAllowed(cluster: ClusterAccess, { use: _use, ...attributes }: Right): Promise<boolean | undefined> {
  const answer = await query(cluster, '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: { namespace: cluster.namespace, ...attributes } },
  });
  return Review.safeParse(answer.body).data?.status.allowed;
}
