/**
 * The API server of the tests as a process of its own, with many slots at rest and a simulated kubelet. Arguments: what it does with streamed lists. Prints
 * its address; takes orders from its parent.
 */
import { PODS, DEPLOYMENTS, CONFIG_MAPS, SERVICES, SLOT_SPECS } from '../src/cluster/client/decide/resource-path.ts';
import type { ResourceType } from '../src/cluster/client/ports.ts';
import { LABELS } from '../src/schema/pod/kube-fields.ts';
import { startFakeKubeApi } from '../test/support/kube/fake-kube-api.ts';
import type { StoredObject } from '../test/support/kube/fake-kube-types.ts';
import { ADDRESS, readyStatus } from './cluster-kubelet.ts';

/** What a parent may order; the answer is a number of its own choice. */
export interface DoubleOrder {
  readonly id: number;
  readonly order:
    | { readonly kind: 'copy'; readonly namespace: string; readonly from: string; readonly to: readonly string[] }
    | { readonly kind: 'restart' };
}

const [streamedLists] = process.argv.slice(2);
const fake = await startFakeKubeApi({
  streamedLists: streamedLists === 'served' ? 'served' : 'refused',
  bookmarkMs: 60_000,
  longestGraceMs: 200,
});

/** The objects of one slot. Its SlotSpec is the first, since it owns the others; Deployments own pods. */
const KINDS: readonly ResourceType[] = [SLOT_SPECS, CONFIG_MAPS, SERVICES, DEPLOYMENTS, PODS];

function copySlot(namespace: string, from: string, to: string): void {
  const uids: [string, string][] = [];
  for (const type of KINDS) {
    const originals = fake
      .objects(type, namespace)
      .filter(({ metadata }) => (type === SLOT_SPECS ? metadata.name === from : metadata.labels?.[LABELS.slot] === from));
    for (const original of originals) {
      let text = JSON.stringify(original).replaceAll(from, to);
      for (const [before, after] of uids) text = text.replaceAll(before, after);
      const { uid: _uid, resourceVersion: _version, ...metadata } = JSON.parse(text).metadata;
      const written = fake.put(type, namespace, { ...JSON.parse(text), metadata });
      uids.push([original.metadata.uid, written.metadata.uid]);
    }
  }
}

/** Creates the pods of each Deployment, ready at once. Those of a removed one are collected as garbage. */
function follow(deployment: StoredObject): void {
  const { namespace = '', name, uid, generation } = deployment.metadata;
  const { replicas, template }: { replicas: number; template: { metadata: object; spec: object } } = JSON.parse(
    JSON.stringify(deployment['spec']),
  );
  const owned = fake.objects(PODS, namespace).filter(({ metadata }) => metadata.ownerReferences?.[0]?.uid === uid);
  for (let index = owned.length; index < replicas; index += 1) {
    fake.put(PODS, namespace, {
      metadata: {
        ...template.metadata,
        name: `${name}-${uid.slice(0, 8)}-${index}`,
        ownerReferences: [{ apiVersion: 'apps/v1', kind: 'Deployment', name, uid, controller: true }],
      },
      spec: { ...template.spec, nodeName: 'node-1' },
      status: readyStatus(),
    });
  }
  for (const pod of owned.slice(replicas)) fake.remove(PODS, namespace, pod.metadata.name);
  const status = {
    observedGeneration: generation,
    replicas,
    readyReplicas: replicas,
    updatedReplicas: replicas,
    availableReplicas: replicas,
  };
  if (JSON.stringify(deployment['status']) !== JSON.stringify(status)) fake.put(DEPLOYMENTS, namespace, { ...deployment, status });
}

let copying = false;
fake.store.subscribe(({ resource, type, object }) => {
  if (copying || resource.plural !== 'deployments' || type === 'DELETED') return;
  setTimeout(() => {
    const present = fake.objects(DEPLOYMENTS, object.metadata.namespace).find(({ metadata }) => metadata.uid === object.metadata.uid);
    if (present !== undefined) follow(present);
  }, 2);
});

async function obey({ order }: DoubleOrder): Promise<void> {
  if (order.kind === 'copy') {
    copying = true;
    for (const name of order.to) copySlot(order.namespace, order.from, name);
    copying = false;
    fake.compact();
    return;
  }
  // The watch cache of a restarted API server has no history.
  await fake.goDown();
  fake.compact();
  await fake.comeUp();
}

process.on('message', (message: DoubleOrder) => {
  void obey(message).then(() => process.send?.({ id: message.id }));
});
process.on('disconnect', () => process.exit(0));
process.stdout.write(`${new URL(fake.url).port} ${ADDRESS}\n`);
