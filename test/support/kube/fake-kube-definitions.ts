/**
 * A custom resource with several versions, as its CustomResourceDefinition on the fake API server says (`definitions: true`). An object is stored in the
 * storage version of its last write. Reads and writes in another version change `apiVersion`, and drop what the schema of that version lacks.
 */
import { tableAt, tablesAt, valueAt } from '../../../src/schema/pod/kube-fields.ts';
import { isFields, type Fields } from './fake-kube-fields.ts';
import { refuse, StoredObject, type FakeResource, type Outcome } from './fake-kube-types.ts';

export interface FakeVersions {
  serves(resource: FakeResource): boolean;
  /** The object in the version of the resource. */
  view(resource: FakeResource, stored: StoredObject): StoredObject;
  /** The object as it is stored after a write in the version of the resource. */
  encode(resource: FakeResource, written: StoredObject): StoredObject;
  refuseApply(resource: FakeResource, name: string, sent: Fields): Outcome<never> | undefined;
  refuseWrite(resource: FakeResource, written: StoredObject): Outcome<never> | undefined;
}

/** Without a definition, every version is served and nothing is converted. */
export const WITHOUT_DEFINITIONS: FakeVersions = {
  serves: () => true,
  view: (_resource, stored) => stored,
  encode: (_resource, written) => written,
  refuseApply: () => undefined,
  refuseWrite: () => undefined,
};

export function createFakeVersions(definitionOf: (name: string) => StoredObject | undefined): FakeVersions {
  const definition = ({ plural, group }: FakeResource): StoredObject | undefined => definitionOf(`${plural}.${group}`);
  const schemaOf = (from: StoredObject, name: string): Fields =>
    tableAt(
      tablesAt(from, 'spec', 'versions').find((each) => each['name'] === name),
      'schema',
      'openAPIV3Schema',
    );
  const as = (from: StoredObject, { group, version }: Pick<FakeResource, 'group' | 'version'>, object: StoredObject): StoredObject => {
    const apiVersion = `${group}/${version}`;
    const managedFields = object.metadata.managedFields?.map((owner) => ({ ...owner, apiVersion }));
    const metadata = { ...object.metadata, ...(managedFields === undefined ? {} : { managedFields }) };
    return StoredObject.parse({ ...Object(pruned(object, schemaOf(from, version))), apiVersion, metadata });
  };
  return {
    serves(resource) {
      const from = definition(resource);
      return (
        from === undefined || tablesAt(from, 'spec', 'versions').some(({ name, served }) => name === resource.version && served === true)
      );
    },
    view(resource, stored) {
      const from = definition(resource);
      return from === undefined ? stored : as(from, resource, stored);
    },
    encode(resource, written) {
      if (resource.plural === 'customresourcedefinitions') return withStorageVersion(written);
      const from = definition(resource);
      return from === undefined ? written : as(from, { ...resource, version: storageOf(from) }, as(from, resource, written));
    },
    refuseApply(resource, name, sent) {
      const from = definition(resource);
      const status = sent['status'];
      if (from === undefined || !isFields(status)) return undefined;
      const declared = tableAt(schemaOf(from, resource.version), 'properties', 'status', 'properties');
      const missing = Object.keys(status).filter((key) => !(key in declared));
      const lines = missing.map((key) => `.status.${key}: field not declared in schema`).join('\n');
      const head = `failed to create typed patch object (${name}; ${resource.group}/${resource.version}, Kind=${resource.kind}): `;
      return missing.length === 0 ? undefined : refuse(500, 'InternalError', head + lines);
    },
    refuseWrite(resource, written) {
      if (resource.plural !== 'customresourcedefinitions') return undefined;
      const names = tablesAt(written, 'spec', 'versions').map(({ name }) => name);
      const gone = storedVersionsOf(written).find((version) => !names.includes(version));
      return gone === undefined
        ? undefined
        : refuse(422, 'Invalid', `status.storedVersions: Invalid value: ${JSON.stringify(gone)}: missing from spec.versions`);
    },
  };
}

const storageOf = (definition: StoredObject): string =>
  String(tablesAt(definition, 'spec', 'versions').find(({ storage }) => storage === true)?.['name']);

function storedVersionsOf(definition: StoredObject): readonly unknown[] {
  const stored = valueAt(definition, 'status', 'storedVersions');
  return Array.isArray(stored) ? stored : [];
}

function withStorageVersion(definition: StoredObject): StoredObject {
  const storedVersions = [...new Set([...storedVersionsOf(definition), storageOf(definition)])];
  return { ...definition, status: { ...tableAt(definition, 'status'), storedVersions } };
}

/** Drops what a structural schema does not declare. */
function pruned(value: unknown, schema: Fields): unknown {
  if (schema['x-kubernetes-preserve-unknown-fields'] === true) return value;
  if (Array.isArray(value)) return value.map((item) => pruned(item, tableAt(schema, 'items')));
  if (!isFields(value)) return value;
  const properties = tableAt(schema, 'properties');
  const others = schema['additionalProperties'];
  const kept = Object.entries(value).filter(([key]) => key in properties || (others !== undefined && others !== false));
  return Object.fromEntries(
    kept.map(([key, below]) => [key, pruned(below, key in properties ? tableAt(properties, key) : Object(others))]),
  );
}
