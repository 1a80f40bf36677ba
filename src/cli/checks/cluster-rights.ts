/** Whether these credentials are enough for `svcctl`, and which right is missing where they are not: the API server is asked about each. */
import { z } from 'zod';
import { SLOT_RESOURCE } from '../../schema/slot-resource.ts';
import type { ClusterAccess } from '../connect/cluster-access.ts';
import { get } from './cluster-checks.ts';
import type { Check } from './doctor-checks.ts';

interface Right {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  /** What one cannot do without it. */
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
  const asked = await Promise.all(RIGHTS.map(async (right) => ({ right, allowed: await isAllowed(cluster, right) })));
  if (asked.every(({ allowed }) => allowed === undefined)) {
    return {
      name: 'rights',
      result: 'warn',
      found: 'the API server does not say',
      hint: 'Check that "kubectl auth can-i --list" works with this context',
    };
  }
  const missing = asked.filter(({ allowed }) => allowed === false).map(({ right }) => right);
  const told = (use: Right['use']): readonly string[] => missing.filter((right) => right.use === use).map(nameOf);
  const hint = `Ask for them in namespace "${cluster.namespace}"`;
  if (told('everything').length > 0)
    return { name: 'rights', result: 'fail', found: `svcctl cannot ask the service: missing ${told('everything').join(', ')}`, hint };
  if (told('edits').length > 0)
    return { name: 'rights', result: 'warn', found: `svcctl can look and not change: missing ${told('edits').join(', ')}`, hint };
  if (told('kubectl').length > 0) {
    return {
      name: 'rights',
      result: 'warn',
      found: `svcctl can do everything; kubectl cannot: missing ${told('kubectl').join(', ')}`,
      hint,
    };
  }
  return { name: 'rights', result: 'ok', found: 'svcctl and kubectl can look and change', hint: '' };
}

function nameOf({ verb, resource, subresource }: Right): string {
  return `"${verb}" "${resource}${subresource === undefined ? '' : `/${subresource}`}"`;
}

/** Undefined: there is no answer. */
async function isAllowed(cluster: ClusterAccess, { use: _use, ...attributes }: Right): Promise<boolean | undefined> {
  const answer = await get(cluster, '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: { namespace: cluster.namespace, ...attributes } },
  });
  return Review.safeParse(answer.body).data?.status.allowed;
}
