/** Where the cost of many slots and replicas is measured: a real cluster, or the API server of the tests in a process of its own. */
import { execFile, fork, type ChildProcess } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { createKubeApi } from '../src/cluster/client/api-client.ts';
import type { KubeApi } from '../src/cluster/client/ports.ts';
import { DEPLOYMENTS, PODS, SLOT_SPECS } from '../src/cluster/client/decide/resource-path.ts';
import { openPodAccount, type PodAccount } from './cluster-account.ts';
import { CONNECTIONS, forEachItem, openBed, slotManifest, slotNames, unwrap } from './cluster-bed.ts';
import { startClusterService, type ClusterService } from './cluster-service.ts';
import type { DoubleOrder } from './scale-double.ts';
import { openLink, openTrustedAccount, type Link } from './scale-link.ts';
import { waitUntil } from './wait-until.ts';

export interface Replica {
  readonly service: ClusterService;
  readonly link: Link;
  readonly name: string;
}

export interface Ground {
  readonly name: string;
  readonly api: KubeApi;
  /** Adds slots until there are so many, and waits until all of them are at rest. */
  populate(count: number): Promise<void>;
  startReplica(name: string): Promise<Replica>;
  /** Undefined if it is not known how. */
  readonly restart: (() => Promise<void>) | undefined;
  dispose(): Promise<void>;
}

/** On a busy machine, the leader may change during a measurement: `SVC_BENCH_LEASE=60s`. Then there are fewer renewals. */
const SETTINGS = process.env['SVC_BENCH_LEASE'] === undefined ? {} : { SVC_LEASE_DURATION: process.env['SVC_BENCH_LEASE'] };
const USER = 'svc-bench';
const POPULATED_MS = 1_800_000;
const never = new AbortController().signal;

export async function applySlotSpec(api: KubeApi, name: string, change: Readonly<Record<string, unknown>> = {}): Promise<void> {
  unwrap(await api.apply(SLOT_SPECS, slotManifest(name, change), { fieldManager: USER }, never));
}

/** `SVC_BENCH_RESTART` is a program that restarts the API server and ends when it is back. */
export async function openCluster(): Promise<Ground> {
  const bed = await openBed('scale');
  const account = await openPodAccount(bed.api);
  const port = Number(new URL(bed.api.server).port);
  const program = process.env['SVC_BENCH_RESTART'];
  let populated = 0;
  return {
    name: 'a real API server',
    api: bed.api,
    async populate(count) {
      const writer = await startClusterService(account, bed.namespace, 'bench-writer');
      await writer.untilLeads();
      await forEachItem(slotNames(count - populated, populated), CONNECTIONS, async (name) => await applySlotSpec(bed.api, name));
      populated = count;
      const isComplete = async (): Promise<boolean> => (await bed.count(DEPLOYMENTS)) >= count && (await bed.count(PODS)) >= count;
      await waitUntil(isComplete, { withinMs: POPULATED_MS, everyMs: 1000, failure: () => `The cluster did not create ${count} pods` });
      await writer.stop();
    },
    startReplica: async (name) => await startLinked({ account, namespace: bed.namespace, name, link: await openLink(port) }),
    restart: program === undefined ? undefined : async () => void (await promisify(execFile)(program)),
    async dispose() {
      await account.dispose();
      await bed.dispose();
    },
  };
}

const NAMESPACE = 'bench';

export async function openDouble(streamedLists: 'served' | 'refused'): Promise<Ground> {
  const account = await openTrustedAccount();
  const { child, port, order } = await startDouble(streamedLists);
  const kubeconfigText = JSON.stringify({
    clusters: [{ name: 'double', cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'bench', user: {} }],
    contexts: [{ name: 'double', context: { cluster: 'double', user: 'bench', namespace: NAMESPACE } }],
    'current-context': 'double',
  });
  const api = unwrap(await createKubeApi({ env: {}, kubeconfigText, namespace: NAMESPACE, version: 'bench' }));
  const startReplica = async (name: string): Promise<Replica> =>
    await startLinked({ account, namespace: NAMESPACE, name, link: await openLink(port, account.certificate) });
  const [seed = ''] = slotNames(1);
  let populated = 0;
  return {
    name: `the API server of the tests, streamed lists ${streamedLists}`,
    api,
    startReplica,
    async populate(count) {
      if (populated === 0) {
        const writer = await startReplica('bench-writer');
        await writer.service.untilLeads();
        await applySlotSpec(api, seed);
        const isReady = async (): Promise<boolean> => (await writer.service.status()).some(({ ready }) => ready);
        await waitUntil(isReady, { withinMs: POPULATED_MS, everyMs: 50, failure: () => 'The first slot did not become ready' });
        // Its status is complete once nothing happens any more.
        await new Promise((resolve) => setTimeout(resolve, 12_000));
        await stopReplica(writer);
        populated = 1;
      }
      await order({ kind: 'copy', namespace: NAMESPACE, from: seed, to: slotNames(count - populated, populated) });
      populated = count;
    },
    restart: async () => await order({ kind: 'restart' }),
    async dispose() {
      child.kill('SIGKILL');
      await account.dispose();
    },
  };
}

export async function stopReplica({ service, link }: Replica): Promise<void> {
  await service.stop();
  await link.close();
}

interface LinkedReplica {
  readonly account: Pick<PodAccount, 'env' | 'runner'>;
  readonly namespace: string;
  readonly name: string;
  readonly link: Link;
}

async function startLinked({ account, namespace, name, link }: LinkedReplica): Promise<Replica> {
  const env = { ...account.env, KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: String(link.port) };
  return { service: await startClusterService({ ...account, env }, namespace, name, SETTINGS), link, name };
}

async function startDouble(streamedLists: string) {
  const child = fork(path.join(import.meta.dirname, 'scale-double.ts'), [streamedLists], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  const port = await new Promise<number>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`The API server of the tests exited with code ${code}`)));
    child.stdout?.once('data', (text: Buffer) => resolve(Number(text.toString().split(' ')[0])));
  });
  return { child, port, order: orderTo(child) };
}

function orderTo(child: ChildProcess): (order: DoubleOrder['order']) => Promise<void> {
  let ids = 0;
  return async (order) => {
    ids += 1;
    const id = ids;
    await new Promise<void>((resolve) => {
      const listen = (message: { readonly id: number }): void => {
        if (message.id !== id) return;
        child.off('message', listen);
        resolve();
      };
      child.on('message', listen);
      child.send({ id, order });
    });
  };
}
