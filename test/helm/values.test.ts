/** The values of the chart: their schema, the defaults and the examples. */
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { Ajv } from 'ajv';
import { parse } from 'yaml';
import { isTable } from '../../src/schema/key-case.ts';
import { helmValuesSchema } from '../../scripts/generate/publish-helm-schema.ts';

const CHART = join(import.meta.dirname, '../../helm/svc');
const check = new Ajv({ strict: false, allErrors: true, formats: { 'date-time': true } }).compile(helmValuesSchema());

function problems(values: unknown): readonly string[] {
  return check(values) ? [] : (check.errors ?? []).map((error) => `${error.instancePath}: ${error.message ?? ''}`);
}

const valuesOf = async (file: string): Promise<unknown> => parse(await readFile(join(CHART, file), 'utf8'));

/** Returns the keys of a schema and of its tables. Keys of maps belong to users and are left out. */
function keysOf(schema: unknown, path = ''): readonly string[] {
  const properties = isTable(schema) && isTable(schema['properties']) ? Object.entries(schema['properties']) : [];
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
  ])('rejects %j', (values, problem) => {
    expect(problems(values).join('\n')).toMatch(problem);
  });

  test.each([
    [{}],
    [{ global: { anything: 1 } }],
    [{ settings: { SVC_PARK_LIMIT: 100, SVC_AUTH_ENABLED: true, SVC_RESYNC: '1m' } }],
    [{ toolboxes: { gguf: { cpu: { image: 'localhost/a:v1' } } } }],
    [{ slots: { primary: { backend: 'cpu', model: { default: 'a' }, lifecycle: { idleTimeout: 'never' } } } }],
    [{ networkPolicy: { modelSources: null } }],
  ])('accepts %j', (values) => {
    expect(problems(values)).toEqual([]);
  });
});
