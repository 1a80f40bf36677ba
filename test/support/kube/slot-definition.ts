/** The CustomResourceDefinition of SlotSpecs as it is published, or as another release might publish it. */
import { slotCrd } from '../../../scripts/generate/publish-crd.ts';
import { DEFINITIONS, resourceName, SLOT_SPECS } from '../../../src/cluster/client/decide/resource-path.ts';
import { tableAt, tablesAt, valueAt } from '../../../src/schema/pod/kube-fields.ts';
import type { FakeKubeApi } from './fake-kube-api.ts';
import type { StoredObject } from './fake-kube-types.ts';

type Json = Readonly<Record<string, unknown>>;

export interface SlotRelease {
  /** Served versions, the oldest one first. */
  readonly served: readonly string[];
  readonly storage: string;
  /** Properties of the schema that are new, by path: `{ 'spec.color': { type: 'string' } }`. */
  readonly added?: Readonly<Record<string, Json>>;
  /** The only version with the new properties. Default: all have them. */
  readonly onlyIn?: string;
  /** Paths that the release does not have yet, such as `status.lastGood`. */
  readonly removed?: readonly string[];
}

export function definitionOf({ served, storage, added = {}, onlyIn, removed = [] }: SlotRelease): Json {
  const published: Json = JSON.parse(JSON.stringify(slotCrd()));
  const [model = {}] = tablesAt(published, 'spec', 'versions');
  const versions = served.map((name) => {
    const version: Json = { ...JSON.parse(JSON.stringify(model)), name, served: true, storage: name === storage };
    const propertiesAt = (part = '') => tableAt(version, 'schema', 'openAPIV3Schema', 'properties', part, 'properties');
    for (const [path, schema] of Object.entries(onlyIn === undefined || onlyIn === name ? added : {})) {
      const [part, key = ''] = path.split('.');
      Object.assign(propertiesAt(part), { [key]: schema });
    }
    for (const path of removed) {
      const [part, key = ''] = path.split('.');
      Reflect.deleteProperty(propertiesAt(part), key);
    }
    return version;
  });
  return { ...published, spec: { ...tableAt(published, 'spec'), versions } };
}

/** Like `kubectl apply` by an administrator. */
export const install = (fake: FakeKubeApi, release: SlotRelease): StoredObject => fake.put(DEFINITIONS, '', definitionOf(release));

export const storedVersions = (fake: FakeKubeApi): unknown => valueAt(fake.objects(DEFINITIONS)[0], 'status', 'storedVersions');

/** SlotSpecs as etcd has them, by namespace and name. */
export function slotsAsStored(fake: FakeKubeApi): Readonly<Record<string, StoredObject>> {
  const own = fake.store.all().filter(({ resource }) => resourceName(resource) === resourceName(SLOT_SPECS));
  return Object.fromEntries(own.map(({ object }) => [`${object.metadata.namespace}/${object.metadata.name}`, object]));
}
