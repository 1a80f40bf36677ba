/** The time a cluster needs for the writes alone: a bare loop writes the objects that the controller wrote for one slot, under other names. */
import type { KubeManifest, KubeObject, ResourceType } from '../src/cluster/client/ports.ts';
import { CONFIG_MAPS, DEPLOYMENTS, SERVICES, SLOT_SPECS } from '../src/cluster/client/decide/resource-path.ts';
import { appliedSpec, restoreApplied } from '../src/cluster/workloads/decide/applied-spec.ts';
import { parseDeployment } from '../src/cluster/workloads/decide/pod-facts.ts';
import { FIELD_MANAGER } from '../src/schema/pod/kube-fields.ts';
import type { PodAccount } from './cluster-account.ts';
import { applySlot, forEachItem, unwrap, type Bed } from './cluster-bed.ts';

/** The writes for one slot: three objects and a status. */
export interface SlotWrites {
  readonly slot: string;
  readonly owner: string;
  readonly configMap: KubeManifest;
  readonly service: KubeManifest;
  readonly deployment: KubeManifest;
  readonly status: KubeManifest;
}

const never = new AbortController().signal;

/** Reads the writes of a slot that the controller has made ready. */
export async function readWrites({ api }: Bed, slot: string): Promise<SlotWrites> {
  const slotSpec = unwrap(await api.get(SLOT_SPECS, slot, never));
  const ownedOf = async (type: ResourceType): Promise<KubeObject> => {
    const all = unwrap(await api.list(type, {}, never)).items;
    const found = all.find(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => uid === slotSpec.metadata.uid));
    if (found === undefined) throw new Error(`Slot "${slot}" has no ${type.kind}`);
    return found;
  };
  const [deployment, service, configMap] = [await ownedOf(DEPLOYMENTS), await ownedOf(SERVICES), await ownedOf(CONFIG_MAPS)];
  const applied = Object.entries(deployment.metadata.annotations ?? {}).filter(([key]) => !key.startsWith('deployment.kubernetes.io/'));
  const facts = parseDeployment(deployment);
  // The record has hashes in place of long texts.
  const spec = facts === undefined ? undefined : restoreApplied(appliedSpec(facts), [facts.spec]);
  return {
    slot,
    owner: slotSpec.metadata.uid ?? '',
    configMap: { ...manifest(configMap), immutable: true, data: configMap['data'] },
    service: { ...manifest(service), spec: serviceSpec(service['spec']) },
    deployment: { ...manifest(deployment, Object.fromEntries(applied)), spec },
    status: { ...manifest(slotSpec), metadata: { name: slot }, status: slotSpec['status'] },
  };
}

/** Writes everything for these slots and returns the seconds: first for the SlotSpecs, as a user applies them, then for the rest, as the controller does. */
export async function writeBare(
  bed: Bed,
  { api }: Pick<PodAccount, 'api'>,
  writes: SlotWrites,
  { names, atOnce }: { readonly names: readonly string[]; readonly atOnce: number },
): Promise<{ readonly slotsS: number; readonly objectsS: number }> {
  const startedAt = performance.now();
  const owners = new Map<string, string>();
  await forEachItem(names, atOnce, async (name) => {
    owners.set(name, (await applySlot(bed, name)).metadata.uid ?? '');
  });
  const applied = performance.now();
  await forEachItem(names, atOnce, async (name) => {
    const text = JSON.stringify(writes)
      .replaceAll(writes.slot, name)
      .replaceAll(writes.owner, owners.get(name) ?? '');
    const { configMap, service, deployment, status }: SlotWrites = JSON.parse(text);
    const options = { fieldManager: FIELD_MANAGER };
    unwrap(await api.apply(CONFIG_MAPS, configMap, options, never));
    unwrap(await api.apply(SERVICES, service, options, never));
    unwrap(await api.apply(DEPLOYMENTS, deployment, options, never));
    unwrap(await api.apply(SLOT_SPECS, status, { fieldManager: `${FIELD_MANAGER}-status`, subresource: 'status' }, never));
  });
  return { slotsS: (applied - startedAt) / 1000, objectsS: (performance.now() - applied) / 1000 };
}

function manifest({ apiVersion = '', kind = '', metadata }: KubeObject, annotations?: Readonly<Record<string, string>>): KubeManifest {
  const { name, labels, ownerReferences } = metadata;
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
      ...(ownerReferences === undefined ? {} : { ownerReferences }),
    },
  };
}

/** Leaves out what the server fills in. */
function serviceSpec(spec: unknown): unknown {
  if (typeof spec !== 'object' || spec === null) return spec;
  return Object.fromEntries(Object.entries(spec).filter(([key]) => ['clusterIP', 'selector', 'ports'].includes(key)));
}
