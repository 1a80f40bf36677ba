/**
 * The example of an admission policy: it is bound where the gateway of the manifests is, and covers each way to pods. Nothing evaluates its expressions here, because the
 * cluster of the tests has no such policies.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';
import { schemaProblem } from '../support/kube/published-schemas.ts';
import { at, listAt } from './rendered.ts';

type Json = Readonly<Record<string, unknown>>;

const MANIFESTS = join(import.meta.dirname, '../../manifests');
const read = async (file: string): Promise<readonly Json[]> =>
  parseAllDocuments(await readFile(join(MANIFESTS, file), 'utf8')).map((document) => document.toJS());

describe('The admission policy for the gateway', () => {
  test('is bound in the namespace of the manifests, denies, and fails closed', async () => {
    const [policy, binding] = await read('admission/gateway-workloads.yaml');
    expect(at(binding, 'spec', 'policyName')).toBe(at(policy, 'metadata', 'name'));
    expect(at(binding, 'spec', 'validationActions')).toEqual(['Deny']);
    const [namespace] = await read('namespace.yaml');
    const name = at(namespace, 'metadata', 'name');
    expect(at(binding, 'spec', 'matchResources', 'namespaceSelector', 'matchLabels')).toEqual({ 'kubernetes.io/metadata.name': name });
    expect(at(policy, 'spec', 'failurePolicy')).toBe('Fail');
    const account: Json = parse(await readFile(join(MANIFESTS, 'base/service-account.yaml'), 'utf8'));
    expect(at(policy, 'spec', 'matchConditions', 0, 'expression')).toContain(
      `'system:serviceaccount:${String(name)}:${String(at(account, 'metadata', 'name'))}'`,
    );
  });

  test('covers every kind of object by which the Role of the gateway makes pods', async () => {
    const [policy] = await read('admission/gateway-workloads.yaml');
    const matched = listAt(policy, 'spec', 'matchConstraints', 'resourceRules').flatMap((rule) => listAt(rule, 'resources'));
    const [role] = await read('base/rbac.yaml');
    const makesPods = [
      'pods',
      'deployments',
      'replicasets',
      'statefulsets',
      'daemonsets',
      'jobs',
      'cronjobs',
      'replicationcontrollers',
      'podtemplates',
    ];
    const granted = listAt(role, 'rules').filter((rule) =>
      ['create', 'update', 'patch'].some((verb) => listAt(rule, 'verbs').includes(verb)),
    );
    expect(granted.flatMap((rule) => listAt(rule, 'resources')).filter((resource) => makesPods.includes(String(resource)))).toEqual(
      matched,
    );
  });

  test('says in each refusal what pods of slots may do', async () => {
    const [policy] = await read('admission/gateway-workloads.yaml');
    const validations = listAt(policy, 'spec', 'validations');
    expect(validations.length).toBe(7);
    for (const validation of validations) expect(at(validation, 'message')).toMatch(/^(Pods|Containers) of slots /);
    // A mistake in the policy would be found by the schema.
    expect(schemaProblem({ ...policy, spec: { ...Object(policy?.['spec']), failurePolicy: 'Open' } })).toContain('failurePolicy');
  });
});

test('The namespace of the manifests has a Pod Security level', async () => {
  const [namespace] = await read('namespace.yaml');
  expect(schemaProblem(namespace ?? {})).toBeUndefined();
  expect(at(namespace, 'metadata', 'labels', 'pod-security.kubernetes.io/enforce')).toBe('restricted');
});
