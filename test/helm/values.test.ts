/** The values of the chart: their schema, the defaults and the examples. */
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { Ajv } from 'ajv';
import { parse } from 'yaml';
import { isTable } from '../../src/schema/words/key-case.ts';
import { helmValuesSchema } from '../../scripts/generate/publish-helm-schema.ts';

const CHART = join(import.meta.dirname, '../../helm/svc');
const check = new Ajv({ strict: false, allErrors: true, formats: { 'date-time': true } }).compile(helmValuesSchema());

function problems(values: unknown): readonly string[] {
  return check(values) ? [] : (check.errors ?? []).map((error) => `${error.instancePath}: ${error.message ?? ''}`);
}

const valuesOf = async (file: string): Promise<unknown> => parse(await readFile(join(CHART, file), 'utf8'));

/** Returns the keys of a schema and of its tables. Keys that belong to users, and parts of Kubernetes objects, are left out. */
function keysOf(schema: unknown, path = ''): readonly string[] {
  const closed = isTable(schema) && schema['additionalProperties'] === false ? schema['properties'] : undefined;
  const properties = isTable(closed) ? Object.entries(closed) : [];
  if (path === '.settings') return [path];
  return properties.length === 0 ? [path] : properties.flatMap(([key, inner]) => keysOf(inner, `${path}.${key}`));
}

function has(values: unknown, path: string): boolean {
  let inner = values;
  for (const key of path.split('.').slice(1)) {
    if (!isTable(inner) || !Object.hasOwn(inner, key)) return false;
    inner = inner[key];
  }
  return true;
}

describe('values.yaml', () => {
  test('matches its schema and has a default for every key', async () => {
    const values = await valuesOf('values.yaml');
    expect(problems(values)).toEqual([]);
    const keys = keysOf(helmValuesSchema()).filter((key) => key !== '.global');
    expect(keys.length).toBeGreaterThan(50);
    for (const key of keys) expect({ key, inValues: has(values, key) }).toEqual({ key, inValues: true });
  });

  test('has valid examples', async () => {
    const names = await readdir(join(CHART, 'examples'));
    expect(names.length).toBeGreaterThan(2);
    for (const name of names) expect({ name, problems: problems(await valuesOf(`examples/${name}`)) }).toEqual({ name, problems: [] });
  });

  test.each<readonly [values: object, problem: RegExp]>([
    [{ replica: 2 }, /must NOT have additional properties/],
    [{ replicas: '2' }, /\/replicas: must be integer/],
    [{ slots: { primary: { model: { defualt: 'a' } } } }, /\/slots\/primary\/model: must have required property 'default'/],
    [{ slots: { primary: { model: { default: 'a' }, idle_timeout: '5m' } } }, /\/slots\/primary: must NOT have additional properties/],
    [{ slots: { primary: { model: { default: 'a' }, backend: 'gpu' } } }, /\/slots\/primary\/backend/],
    [{ slots: { 'a--b': { model: { default: 'a' } } } }, /\/slots: property name must be valid/],
    [{ settings: { SVC_LOG_LEVEL: 'loud' } }, /\/settings\/SVC_LOG_LEVEL/],
    [{ settings: { SVC_RUNTIME: 'podman' } }, /\/settings: must NOT have additional properties/],
    [{ settings: { SVC_LOGLEVEL: 'info' } }, /\/settings: must NOT have additional properties/],
    [{ toolboxes: { gguf: { cpu: { image: 'registry.example/a:v1' } } } }, /\/toolboxes\/gguf\/cpu: must have required property 'digest'/],
    [{ toolboxes: { llama: {} } }, /\/toolboxes: property name must be valid/],
    [{ gpus: { allocation: 'magic' } }, /\/gpus\/allocation/],
    [{ service: { type: 'ExternalName' } }, /\/service\/type/],
    [{ service: { loadBalancerSourceRanges: ['10.0.0.0'] } }, /\/service\/loadBalancerSourceRanges\/0: must match pattern/],
    [{ nameOverride: 'My App' }, /\/nameOverride: must match pattern/],
    [{ commonLabels: { team: 'my team' } }, /\/commonLabels\/team: must match pattern/],
    [{ commonLabels: { 'a b': 'c' } }, /\/commonLabels: property name must be valid/],
    [{ commonAnnotations: { a: 1 } }, /\/commonAnnotations\/a: must be string/],
    [{ extraVolumes: [{ configMap: {} }] }, /\/extraVolumes\/0: must have required property 'name'/],
    [{ extraVolumeMounts: [{ name: 'a', mountPath: 'b' }] }, /\/extraVolumeMounts\/0\/mountPath: must match pattern/],
    [{ extraEnvFrom: [{ secret: 'a' }] }, /\/extraEnvFrom\/0: must NOT have additional properties/],
    [{ ingress: { hosts: ['a.example'] } }, /\/ingress\/hosts\/0: must be object/],
    [{ ingress: { hosts: [{ paths: [] }] } }, /\/ingress\/hosts\/0: must have required property 'host'/],
    [{ ingress: { host: 'https://a.example' } }, /\/ingress\/host: must match pattern/],
    [{ podSecurityContext: { runAsUser: 'nobody' } }, /\/podSecurityContext\/runAsUser: must be integer/],
    [{ topologySpreadConstraints: [{ maxSkew: 1 }] }, /\/topologySpreadConstraints\/0: must have required property 'topologyKey'/],
    [{ deploymentStrategy: { type: 'OnDelete' } }, /\/deploymentStrategy\/type/],
    [
      { deploymentStrategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: 0 } } },
      /\/deploymentStrategy\/rollingUpdate: must NOT be valid/,
    ],
    [
      { deploymentStrategy: { rollingUpdate: { maxUnavailable: '0%', maxSurge: 0 } } },
      /\/deploymentStrategy\/rollingUpdate: must NOT be valid/,
    ],
    [
      {
        extraEnv: [
          { name: 'A', value: 'b' },
          { name: 'SVC_IMAGE', value: 'b' },
        ],
      },
      /\/extraEnv\/1: must NOT be valid/,
    ],
    [{ extraEnv: [{ name: 'SVC_MANAGEMENT_LISTEN', value: ':1' }] }, /\/extraEnv\/0: must NOT be valid/],
    [{ auth: { identityRoles: { 'anna@example.com': 'root' } } }, /\/auth\/identityRoles\/anna@example\.com/],
    [{ auth: { identityRoles: { 'a b': 'admin' } } }, /\/auth\/identityRoles: property name must be valid/],
    [{ revisionHistoryLimit: -1 }, /\/revisionHistoryLimit: must be >= 0/],
  ])('rejects %j', (values, problem) => {
    expect(problems(values).join('\n')).toMatch(problem);
  });

  test.each([
    [{}],
    [{ global: { anything: 1 } }],
    [{ settings: { SVC_PARK_LIMIT: 100, SVC_ALLOW_UNSAFE_EDITS: true, SVC_RESYNC: '1m' } }],
    [{ toolboxes: { gguf: { cpu: { image: 'localhost/a:v1' } } } }],
    [{ slots: { primary: { backend: 'cpu', model: { default: 'a' }, lifecycle: { idleTimeout: 'never' } } } }],
    [{ networkPolicy: { modelSources: null } }],
    [{ deploymentStrategy: { rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } } }],
    [{ extraEnv: [{ name: 'SVC_TURN_SECRET', valueFrom: {} }] }],
    [{ podSecurityContext: { runAsUser: null, seLinuxOptions: { level: 's0' } } }],
    [{ ingress: { host: '*.a.example', hosts: [{ host: 'b.example' }] } }],
    [{ service: { type: 'LoadBalancer', loadBalancerSourceRanges: ['10.0.0.0/8', '::/0'] } }],
    [{ commonLabels: { 'example.com/team': 'ml', empty: '' } }],
  ])('accepts %j', (values) => {
    expect(problems(values)).toEqual([]);
  });
});
