import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parse } from 'yaml';
import { generatedFiles } from '../../scripts/generate.ts';
import { isTable } from '../../src/schema/words/key-case.ts';
import { slotCrd } from '../../scripts/generate/publish-crd.ts';
import { conditionReference } from '../../scripts/generate/publish-reference.ts';
import { slotEditorSchema } from '../../scripts/generate/publish-editor-schema.ts';
import { PROVIDER_OF_MODEL } from '../../src/schema/slot/catalogue-providers.ts';
import { PROVIDER_KINDS } from '../../src/schema/slot/provider-kinds.ts';
import { parseReason, REASONS } from '../../src/schema/status/reasons.ts';
import type { ReasonFacts } from '../../src/schema/status/slot-reasons.ts';
import { SLOT_RULES } from '../../src/schema/slot/slot-rules.ts';
import { SlotDocument } from '../../src/schema/slot/slot-spec.ts';
import { CONDITION_TYPES } from '../../src/schema/status/slot-status.ts';
import { slotDocuments } from '../schema/slot-arbitrary.ts';

type Json = Readonly<Record<string, unknown>>;

const at = (value: unknown, ...path: readonly (string | number)[]): unknown =>
  path.reduce<unknown>((inner, part) => (Array.isArray(inner) ? inner[Number(part)] : isTable(inner) ? inner[part] : undefined), value);
const version = at(slotCrd(), 'spec', 'versions', 0);
const root = at(version, 'schema', 'openAPIV3Schema');

/** Yields every schema node with its path. */
function* nodes(node: unknown, path: string): Generator<readonly [string, Json]> {
  if (!isTable(node)) return;
  yield [path, node];
  if (isTable(node['properties'])) for (const [key, inner] of Object.entries(node['properties'])) yield* nodes(inner, `${path}.${key}`);
  yield* nodes(node['items'], `${path}[]`);
  yield* nodes(node['additionalProperties'], `${path}{}`);
}

/** Validates a value like Kubernetes, as far as our schema needs it. */
function accepts(schema: Json, value: unknown): boolean {
  const branches = Array.isArray(schema['anyOf']) ? schema['anyOf'].filter(isTable) : [];
  if (schema['x-kubernetes-int-or-string'] === true) {
    return accepts(
      { ...schema, 'x-kubernetes-int-or-string': false, anyOf: [], type: typeof value === 'string' ? 'string' : 'integer' },
      value,
    );
  }
  if (branches.length > 0 && !branches.some((branch) => accepts({ ...branch, type: schema['type'] }, value))) return false;
  if (Array.isArray(schema['enum']) && !schema['enum'].includes(value)) return false;
  if (typeof value === 'string') {
    if (schema['type'] !== 'string') return false;
    if (typeof schema['maxLength'] === 'number' && Array.from(value).length > schema['maxLength']) return false;
    return typeof schema['pattern'] !== 'string' || new RegExp(schema['pattern'], 'u').test(value);
  }
  if (typeof value === 'number') {
    if (schema['type'] !== 'integer' || !Number.isInteger(value)) return false;
    return value >= Number(schema['minimum'] ?? -Infinity) && value <= Number(schema['maximum'] ?? Infinity);
  }
  if (typeof value === 'boolean') return schema['type'] === 'boolean';
  if (Array.isArray(value))
    return schema['type'] === 'array' && value.every((inner) => isTable(schema['items']) && accepts(schema['items'], inner));
  if (!isTable(value) || schema['type'] !== 'object') return false;
  const required = Array.isArray(schema['required']) ? schema['required'].map(String) : [];
  if (!required.every((key) => Object.hasOwn(value, key))) return false;
  return Object.entries(value).every(([key, inner]) => {
    const known = at(schema, 'properties', key) ?? schema['additionalProperties'];
    return isTable(known) && accepts(known, inner);
  });
}

describe('the CRD', () => {
  test('is structural: every node has a type, and nothing that Kubernetes rejects', () => {
    for (const [path, node] of nodes(root, '')) {
      const isEither = node['x-kubernetes-int-or-string'] === true;
      // Any JSON has no type, but this keyword, which Kubernetes then asks for.
      const isAny = ['x-kubernetes-preserve-unknown-fields', 'description,x-kubernetes-preserve-unknown-fields'].includes(
        Object.keys(node).toSorted().join(),
      );
      expect([path, typeof node['type']]).toEqual([path, isEither || isAny ? 'undefined' : 'string']);
      for (const limit of ['least', 'most']) expect([path, limit in node]).toEqual([path, false]);
      expect([path, node['additionalProperties'] !== false]).toEqual([path, true]);
      for (const keyword of ['$ref', '$schema', 'id', 'const', 'propertyNames', 'definitions'])
        expect([path, keyword in node]).toEqual([path, false]);
      const branches = Array.isArray(node['anyOf']) ? node['anyOf'] : [];
      if (isEither) expect(branches).toEqual([{ type: 'integer' }, { type: 'string' }]);
      else for (const branch of branches) expect(Object.keys(branch)).not.toEqual(expect.arrayContaining(['type']));
      if (node['format'] !== undefined) expect(['date-time', 'int32', 'int64']).toContain(node['format']);
    }
  });

  test('is structural: no part of an "allOf" says a type', () => {
    for (const [path, node] of nodes(root, ''))
      expect([path, [node['allOf'] ?? []].flat().some((part) => typeof part === 'object' && part !== null && 'type' in part)]).toEqual([
        path,
        false,
      ]);
  });

  test('has patterns that RE2 supports', () => {
    for (const [path, node] of nodes(root, ''))
      expect([path, /\(\?[=!<]|\\[1-9]/.test(JSON.stringify(node['pattern'] ?? ''))]).toEqual([path, false]);
  });

  test('describes every key of a spec and of a status', () => {
    for (const [path, node] of nodes(root, '')) {
      if (/\.(spec|status)\./.test(`${path}.`) && !/(\[\]|\{\})$/.test(path))
        expect([path, typeof node['description']]).toEqual([path, 'string']);
    }
  });

  test('accepts every slot that the schema accepts', () => {
    const spec = at(root, 'properties', 'spec');
    if (!isTable(spec)) throw new Error('No schema of the spec');
    fc.assert(
      fc.property(slotDocuments, (document) => {
        expect(SlotDocument.safeParse(document).success).toBe(true);
        expect(accepts(spec, document)).toBe(true);
      }),
      { numRuns: 500 },
    );
    for (const bad of [
      {},
      { model: {} },
      { model: { default: '../x' } },
      { model: { default: 'a' }, priority: 1001 },
      { model: { default: 'a' }, lifecycle: { idleTimeout: 'soon' } },
    ]) {
      expect(accepts(spec, bad)).toBe(false);
    }
  });

  test('has the names, subresources and columns of the contract', () => {
    expect(at(slotCrd(), 'spec', 'names')).toMatchObject({ plural: 'slotspecs', singular: 'slotspec', shortNames: ['slot', 'slots'] });
    expect(version).toMatchObject({
      name: 'v1alpha1',
      served: true,
      storage: true,
      subresources: { status: {}, scale: { specReplicasPath: '.spec.replicas' } },
    });
    const columns = at(version, 'additionalPrinterColumns');
    const shown = (Array.isArray(columns) ? columns : []).filter((column) => at(column, 'priority') === undefined);
    expect(shown.map((column) => at(column, 'name'))).toEqual(['State', 'Model', 'Backend', 'Ready', 'Up-to-date', 'Reason', 'Age']);
  });

  test('has the same schema, subresources and columns in every version, so that none has to be converted', () => {
    const versions = at(slotCrd(), 'spec', 'versions');
    const [first, ...others] = Array.isArray(versions) ? versions : [];
    expect([first, ...others].map(({ name, served, storage }) => [name, served, storage])).toEqual([
      ['v1alpha1', true, true],
      ['v1beta1', true, false],
    ]);
    for (const other of others) expect({ ...other, name: 'v1alpha1', storage: true }).toEqual(first);
    expect(at(slotCrd(), 'spec', 'conversion')).toEqual({ strategy: 'None' });
    // "kubectl apply" without "--server-side" copies the definition into an annotation.
    expect(JSON.stringify(slotCrd()).length).toBeLessThan(250_000);
  });

  test('knows nothing of the catalogue, which changes more often than a definition', () => {
    const text = JSON.stringify(slotCrd());
    for (const id of Object.keys(PROVIDER_OF_MODEL)) expect(text).not.toContain(id);
  });

  test('restricts in CEL the backends of each provider and the combinations of keys', () => {
    const rules = [...nodes(root, '')].flatMap(([path, node]) =>
      (Array.isArray(node['x-kubernetes-validations']) ? node['x-kubernetes-validations'] : []).map((rule: unknown) => [
        path,
        String(at(rule, 'rule')),
      ]),
    );
    for (const [kind, { backends }] of Object.entries(PROVIDER_KINDS)) {
      const offered = `self.backend in [${backends.map((backend) => `'${backend}'`).join(', ')}]`;
      expect(rules).toContainEqual(['.spec', `!has(self.provider) || self.provider != '${kind}' || !has(self.backend) || ${offered}`]);
    }
    for (const { at: place, cel } of SLOT_RULES)
      expect(rules).toContainEqual([`.spec${['', ...place].join('.').replaceAll('.*', '[]')}`, cel]);
  });

  test('has a message for every duration, size and model id that does not match its pattern', () => {
    for (const [path, node] of nodes(root, '')) {
      if (/Timeout$|memory$|\.size$|model\.default$/.test(path))
        expect([path, typeof at(node, 'x-kubernetes-validations', 0, 'message')]).toEqual([path, 'string']);
    }
  });
});

describe('the editor’s schema', () => {
  test('has the keys of TOML and rejects unknown ones', () => {
    const schema = slotEditorSchema();
    expect(at(schema, 'properties', 'lifecycle', 'properties', 'idle_timeout', 'default')).toBe('never');
    expect(at(schema, 'properties', 'lifecycle', 'properties', 'idleTimeout')).toBeUndefined();
    expect(at(schema, 'properties', 'tolerations', 'items', 'properties', 'toleration_seconds', 'type')).toBe('integer');
    expect(at(schema, 'properties', 'lifecycle', 'additionalProperties')).toBe(false);
    expect(schema['required']).toEqual(['model']);
  });
});

describe('the page of conditions and reasons', () => {
  const text = conditionReference();
  const listed = Object.entries<ReasonFacts>(REASONS);

  test('has every condition and every reason, each with a meaning and what to do', () => {
    for (const type of CONDITION_TYPES) expect(text).toContain(`| \`${type}\` | `);
    for (const [reason, { meaning, action, stalled }] of listed)
      expect(text).toContain(`| \`${reason}\`${stalled === true ? ' *' : ''} | ${meaning} | ${action} |`);
    for (const [reason, { meaning, action }] of listed)
      expect([reason, [meaning, action].every((part) => /^[`A-Zp].{2,}[^.]$/.test(part))]).toEqual([reason, true]);
  });

  test('has advice for every reason that can leave a slot stalled', () => {
    const stalling = listed.filter(([, { stalled }]) => stalled === true);
    expect(stalling.map(([reason]) => reason)).toEqual(
      expect.arrayContaining(['CrashLoop', 'ImageUnknown', 'InsufficientMemory', 'ModelMissing', 'ProviderMissing', 'SpecInvalid']),
    );
    for (const [reason, { action }] of stalling) expect([reason, /^(Nothing|Wait)/.test(action)]).toEqual([reason, false]);
  });
});

describe('parseReason()', () => {
  test('knows the table and the resources that a node can run out of', () => {
    expect(Object.keys(REASONS).map(parseReason)).toEqual(Object.keys(REASONS));
    expect(['OutOfamd.com/gpu', 'imageNotPresent', '', undefined, 7].map(parseReason)).toEqual(['OutOfamd.com/gpu', ...Array(4)]);
  });
});

describe('generatedFiles()', () => {
  test('end with one line break, and the YAML files contain the CRD', () => {
    for (const file of generatedFiles()) expect([file.path, /[^\n]\n$/.test(file.text)]).toEqual([file.path, true]);
    const crds = generatedFiles().filter((file) => /(^|\/)crds\//.test(file.path));
    expect(crds).toHaveLength(2);
    for (const crd of crds) expect(parse(crd.text)).toEqual(slotCrd());
  });
});
